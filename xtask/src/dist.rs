//! `cargo xtask dist aws [x86_64|arm64]`: what `deploy/aws` runs, as a zip and as the context of a container image.

use std::{
    env, fs,
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::run::{Result, cargo, read, root, run, say, target};

const PACKAGE: &str = "handler-lambda";
const BINARY: &str = "bootstrap";
const PROFILE: &str = "lambda";

/// The minor version of glibc 2 in `provided.al2023`.
/// <https://docs.aws.amazon.com/linux/al2023/ug/glibc-gcc-and-binutils.html>
const GLIBC: u32 = 34;

/// A processor that Lambda has.
#[derive(Debug, Clone, Copy)]
struct Architecture {
    /// Lambda's name for it.
    name: &'static str,
    target: &'static str,
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        name: "x86_64",
        target: "x86_64-unknown-linux-gnu",
    },
    Architecture {
        name: "arm64",
        target: "aarch64-unknown-linux-gnu",
    },
];

impl Architecture {
    fn named(name: &str) -> Result<Self> {
        ARCHITECTURES
            .into_iter()
            .find(|known| known.name == name)
            .ok_or_else(|| format!("Lambda has x86_64 and arm64, got {name}"))
    }

    /// Whether this machine runs what is built for it.
    fn is_native(self) -> bool {
        self.name == native() && env::consts::OS == "linux"
    }
}

/// Lambda's name for this machine's architecture.
fn native() -> &'static str {
    match env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    }
}

/// Builds for the architecture named, or for this machine's, and says where the two are.
pub(crate) fn aws(architecture: Option<&str>) -> Result<()> {
    let named = architecture.unwrap_or(native());
    let binary = build(Architecture::named(named)?, None)?;
    let bytes = read(&binary)?;
    check_glibc(&bytes)?;

    let folder = target().join("dist/aws");
    let container = folder.join("container");
    fs::create_dir_all(&container).map_err(|error| format!("{}: {error}", container.display()))?;
    let archive = folder.join(format!("bootstrap-{named}.zip"));
    write_zip(&archive, &bytes).map_err(|what| format!("{}: {what}", archive.display()))?;
    for (from, name) in [
        (binary, BINARY),
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

/// Builds the program for this machine as it is shipped, with this contract, and returns its path.
pub(crate) fn for_here(contract: &str) -> Result<PathBuf> {
    build(Architecture::named(native())?, Some(contract))
}

/// Builds the program, with this contract or the environment's, and returns its path. Zig links against the glibc that
/// Lambda has, whatever this machine's is.
fn build(architecture: Architecture, contract: Option<&str>) -> Result<PathBuf> {
    let options = [
        "--locked",
        "--profile",
        PROFILE,
        "-p",
        PACKAGE,
        "--bin",
        BINARY,
        "--target",
    ];
    let target = architecture.target;
    let zig = Command::new("cargo-zigbuild")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    let linker = format!(
        "CARGO_TARGET_{}_LINKER",
        target.to_uppercase().replace('-', "_")
    );
    let mut cargo = if zig {
        let mut cargo = cargo(&["zigbuild"]);
        cargo.args(options).arg(format!("{target}.2.{GLIBC}"));
        cargo
    } else if architecture.is_native() || env::var_os(&linker).is_some() {
        let mut cargo = cargo(&["build"]);
        cargo.args(options).arg(target);
        cargo
    } else {
        return Err(format!(
            "this machine cannot link for {target}: install cargo-zigbuild (pip install cargo-zigbuild) and the target \
             (rustup target add {target}), or set {linker} to a linker for it"
        ));
    };
    if let Some(contract) = contract {
        cargo.env("FIRSTCLAIM_PIPELINE", contract);
    }
    run(&mut cargo)?;
    Ok(self::target().join(target).join(PROFILE).join(BINARY))
}

/// Refuses a program that Lambda's loader would refuse.
fn check_glibc(program: &[u8]) -> Result<()> {
    match newest_glibc(program) {
        Some(minor) if minor > GLIBC => Err(format!(
            "the program needs glibc 2.{minor}, and provided.al2023 has 2.{GLIBC}: install cargo-zigbuild (pip install \
             cargo-zigbuild), with which it is linked against that one, or build on an older system"
        )),
        _ => Ok(()),
    }
}

/// The minor version of the newest glibc 2 whose symbols a program names.
fn newest_glibc(program: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"\0GLIBC_2.";
    program
        .windows(NAME.len())
        .enumerate()
        .filter(|(_, window)| *window == NAME)
        .filter_map(|(at, _)| {
            let digits: String = program[at + NAME.len()..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .map(|byte| char::from(*byte))
                .collect();
            digits.parse().ok()
        })
        .max()
}

/// The program alone, executable. The same program gives the same bytes: no time is in them.
fn write_zip(path: &Path, program: &[u8]) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o755);
    let mut archive = ZipWriter::new(File::create(path)?);
    archive.start_file(BINARY, options)?;
    archive.write_all(program)?;
    archive.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_found() {
        assert_eq!(
            newest_glibc(b"..\0GLIBC_2.17\0GLIBC_2.34\0GLIBC_2.2.5\0"),
            Some(34)
        );
        assert_eq!(newest_glibc(b"no names"), None);
        assert!(check_glibc(b"\0GLIBC_2.34\0").is_ok());
        assert!(check_glibc(b"\0GLIBC_2.35\0").is_err());
    }

    #[test]
    fn the_same_program_gives_the_same_zip() {
        let folder = env::temp_dir().join(format!("firstclaim-dist-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [one, other] = ["one.zip", "other.zip"].map(|name| {
            write_zip(&folder.join(name), b"program").unwrap();
            fs::read(folder.join(name)).unwrap()
        });
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(one, other);
        assert!(
            one.windows(BINARY.len())
                .any(|window| window == BINARY.as_bytes())
        );
    }
}
