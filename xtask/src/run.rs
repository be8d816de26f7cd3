//! Running programs from the workspace's root, and saying which.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Why a command of this workspace failed, for people.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// Says a line on standard error.
pub(crate) fn say(line: &str) {
    // If standard error is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// The folder for what is built or installed: `target`, unless the environment names another.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |named| root().join(named))
}

/// The cargo that runs this program. It hears nothing of this program's own package: some dependencies would be built anew
/// for that, and all that stands on them (ring's build script looks at these variables).
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program to its end, which must be a good one.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = describe(command);
    say(&format!("\n$ {line}"));
    let status = command
        .current_dir(root())
        .status()
        .map_err(|error| format!("{line}: cannot be started: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{line}: {status}"))
    }
}

/// A file's bytes.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Installs what the file `pins` names, unless it was installed already: `mark`, a copy of that file, says so.
pub(crate) fn installed(
    pins: &Path,
    mark: &Path,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let wanted = read(pins)?;
    if std::fs::read(mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    install()?;
    // Written last: what is not installed whole is installed anew.
    std::fs::write(mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))
}

/// The command as it would be typed.
pub(crate) fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
