//! `cargo xtask dist aws [x86_64|arm64]`: what `deploy/aws` runs, as a zip and as the context of a container image.

use std::{fs, path::PathBuf};

use super::{Architecture, Shipped, native, write_zip};
use crate::run::{Result, read, root, say, target};

/// The function. Amazon Linux 2023, `provided.al2023`, has glibc 2.34.
/// <https://docs.aws.amazon.com/linux/al2023/ug/glibc-gcc-and-binutils.html>
const FUNCTION: Shipped = Shipped {
    package: "handler-lambda",
    binary: "bootstrap",
    system: "provided.al2023",
    glibc: 34,
};

/// Builds for the architecture named, or for this machine's, and says where the two are.
pub(crate) fn dist(architecture: Option<&str>) -> Result<()> {
    let named = architecture.unwrap_or(native());
    let program = FUNCTION.build(Architecture::named(named)?, None)?;
    let bytes = read(&program)?;
    FUNCTION.check_glibc(&bytes)?;

    let folder = target().join("dist/aws");
    let container = folder.join("container");
    fs::create_dir_all(&container).map_err(|error| format!("{}: {error}", container.display()))?;
    let archive = folder.join(format!("bootstrap-{named}.zip"));
    write_zip(&archive, FUNCTION.binary, &bytes)
        .map_err(|what| format!("{}: {what}", archive.display()))?;
    for (from, name) in [
        (program, FUNCTION.binary),
        (root().join("deploy/aws/Dockerfile"), "Dockerfile"),
    ] {
        fs::copy(&from, container.join(name))
            .map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let size = read(&archive)?.len();
    let platform = if named == "x86_64" { "amd64" } else { named };
    say(&format!(
        "\n{} ({}.{} MB)\ndocker build --platform linux/{platform} --provenance=false {}",
        archive.display(),
        size / 1_000_000,
        size % 1_000_000 / 100_000,
        container.display(),
    ));
    Ok(())
}

/// Builds the function for this machine as it is shipped, with this contract, and returns its path.
pub(crate) fn for_here(contract: &str) -> Result<PathBuf> {
    FUNCTION.build(Architecture::named(native())?, Some(contract))
}
