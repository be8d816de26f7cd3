//! The build script of every handler: the pipeline contract is checked and compiled in.
//!
//! It is `pipeline.toml` at the workspace's root, or the file that `FIRSTCLAIM_PIPELINE` names (relative to that root). A
//! contract that cannot be used fails the build, and says why. A handler's `build.rs` calls [`compile_in`], and the handler
//! itself includes `concat!(env!("OUT_DIR"), "/pipeline.toml")`.

use std::{
    env, fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use identity_core::{
    identity::{Contract, ContractError},
    text::error_chain,
};
use toml::Table;

const VARIABLE: &str = "FIRSTCLAIM_PIPELINE";
const FILE: &str = "pipeline.toml";

/// Why there is no contract to compile in.
#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error("{}", .0.display())]
    File(PathBuf, #[source] io::Error),
    #[error("the pipeline {} cannot be used", .0.display())]
    Contract(PathBuf, #[source] Box<ContractError>),
    #[error("the pipeline {} has no [job]: there is nothing to run", .0.display())]
    NoJob(PathBuf),
    #[error("Cargo did not set {0}: this is for build scripts")]
    NotCargo(&'static str),
}

/// The whole of a handler's build script.
pub fn compile_in() {
    tell(&format!("rerun-if-env-changed={VARIABLE}"));
    if let Err(error) = copy_checked() {
        // Cargo tells this as an error of the package, and fails.
        tell(&format!("error={}", error_chain(&error)));
    }
}

fn copy_checked() -> Result<(), BuildError> {
    let package = folder("CARGO_MANIFEST_DIR")?;
    let named = env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let named = named.map_or_else(|| PathBuf::from(FILE), PathBuf::from);
    let path = workspace_root(&package).join(named);
    tell(&format!("rerun-if-changed={}", path.display()));
    let text = checked(&path)?;
    let copy = folder("OUT_DIR")?.join(FILE);
    fs::write(&copy, text).map_err(|error| BuildError::File(copy, error))
}

/// A contract's text, once it is known that a handler can use it.
fn checked(path: &Path) -> Result<String, BuildError> {
    let text =
        fs::read_to_string(path).map_err(|error| BuildError::File(path.to_owned(), error))?;
    let contract = Contract::parse(&text)
        .map_err(|error| BuildError::Contract(path.to_owned(), Box::new(error)))?;
    match contract.job() {
        Some(_) => Ok(text),
        None => Err(BuildError::NoJob(path.to_owned())),
    }
}

/// The nearest folder around a package whose manifest has a `[workspace]`, as Cargo looks for it; the package's own where
/// there is none.
fn workspace_root(package: &Path) -> &Path {
    let is_root = |folder: &&Path| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let manifest = manifest.parse::<Table>();
        manifest.is_ok_and(|manifest| manifest.contains_key("workspace"))
    };
    package.ancestors().find(is_root).unwrap_or(package)
}

fn folder(variable: &'static str) -> Result<PathBuf, BuildError> {
    let folder = env::var_os(variable).map(PathBuf::from);
    folder.ok_or(BuildError::NotCargo(variable))
}

/// Gives Cargo an instruction.
fn tell(instruction: &str) {
    // Without standard output nobody listens.
    let _ = writeln!(io::stdout(), "cargo::{instruction}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: &str = "[package]\nname = 'handler'\n# [workspace]\n";

    #[test]
    fn the_root_is_the_nearest_manifest_with_a_workspace_however_deep_the_package_lies() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("crates/handlers/handler");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("Cargo.toml"), MEMBER).unwrap();
        assert_eq!(workspace_root(&deep), deep, "no workspace");
        fs::write(folder.path().join("Cargo.toml"), "[workspace]").unwrap();
        assert_eq!(workspace_root(&deep), folder.path());
        let nearer = folder.path().join("crates");
        fs::write(nearer.join("Cargo.toml"), "workspace.members = []").unwrap();
        assert_eq!(workspace_root(&deep), nearer);
    }

    #[test]
    fn only_a_contract_with_a_job_is_compiled_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let named = path.display();
        let told = || error_chain(&checked(&path).unwrap_err());
        assert!(
            told().starts_with(&format!("{named}: No such file")),
            "{}",
            told()
        );
        let contract = "name = 'scenes'\nversion = '1'\nscheme = 'strict'\n";
        fs::write(&path, contract).unwrap();
        assert_eq!(
            told(),
            format!("the pipeline {named} has no [job]: there is nothing to run")
        );
        fs::write(&path, format!("{contract}[job]\nexce = ['true']")).unwrap();
        assert!(told().contains(r#"unknown key "exce" in [job]"#));
        let whole = format!("{contract}[job]\nexec = ['true']");
        fs::write(&path, &whole).unwrap();
        assert_eq!(checked(&path).unwrap(), whole);
    }
}
