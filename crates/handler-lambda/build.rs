//! Compiles the pipeline contract in.

fn main() {
    contract_build::compile_in();
}
