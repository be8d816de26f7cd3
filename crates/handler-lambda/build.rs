//! Compiles the pipeline contract in: `pipeline.toml` at the workspace's root, or the file that `FIRSTCLAIM_PIPELINE` names
//! (relative to that root). A contract that cannot be used fails the build, and says why.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use identity_core::{identity::Contract, text::error_chain};

const VARIABLE: &str = "FIRSTCLAIM_PIPELINE";

fn main() {
    if let Err(error) = compile_in() {
        // Cargo tells this as an error of this package, and fails.
        println!("cargo::error={error}");
    }
}

fn compile_in() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = package.ancestors().nth(2).unwrap_or(&package);
    let named = env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let path = root.join(named.map_or_else(|| PathBuf::from("pipeline.toml"), PathBuf::from));
    println!("cargo::rerun-if-changed={}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let contract = Contract::parse(&text).map_err(|error| {
        let what = error_chain(&error);
        format!("the pipeline {} cannot be used: {what}", path.display())
    })?;
    if contract.job().is_none() {
        let path = path.display();
        return Err(format!("the pipeline {path} has no [job]: there is nothing to run").into());
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("pipeline.toml"), text)?;
    Ok(())
}
