//! The benchmark behind `cargo xtask bench`: each figure beside a peer or a limit, measured in turns in the same run.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at the first surprise"
)]

mod claims;
mod derive;
mod keys;
mod runs;
mod timing;

fn main() {
    // `cargo bench` passes `--bench`; anything else is a section's name.
    let sections: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let wanted = |name: &str| sections.is_empty() || sections.iter().any(|section| section == name);
    println!("| what | figure | beside | ratio |\n|---|---|---|---|");
    if wanted("ids") {
        derive::job_ids();
    }
    if wanted("bytes") {
        derive::bytes_to_ids();
    }
    if wanted("keys") {
        keys::keys();
    }
    if wanted("sqlite") {
        claims::sqlite();
    }
    #[cfg(feature = "postgres")]
    if wanted("postgres") {
        claims::postgres();
    }
    if wanted("run") {
        runs::runs();
        runs::side_by_side();
    }
}
