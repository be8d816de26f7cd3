//! `cargo xtask dist CLOUD`: what a cloud runs, built for its system and packed.

pub(crate) mod aws;

use std::{
    env,
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::run::{Result, cargo, run, target};

const PROFILE: &str = "function";

/// A program that a cloud runs.
#[derive(Debug)]
struct Shipped {
    package: &'static str,
    binary: &'static str,
    /// The cloud's name for the system that it runs on.
    system: &'static str,
    /// The minor version of that system's glibc 2.
    glibc: u32,
}

/// A processor that clouds have.
#[derive(Debug, Clone, Copy)]
struct Architecture {
    /// Its name on the command line.
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
            .ok_or_else(|| format!("there are x86_64 and arm64, got {name}"))
    }

    /// Whether this machine runs what is built for it.
    fn is_native(self) -> bool {
        self.name == native() && env::consts::OS == "linux"
    }
}

/// The name of this machine's architecture.
fn native() -> &'static str {
    match env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    }
}

impl Shipped {
    /// Builds the program, with this contract or the environment's, and returns its path. Zig links against the glibc that
    /// its cloud has, whatever this machine's is.
    fn build(&self, architecture: Architecture, contract: Option<&str>) -> Result<PathBuf> {
        let options = [
            "--locked",
            "--profile",
            PROFILE,
            "-p",
            self.package,
            "--bin",
            self.binary,
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
            cargo
                .args(options)
                .arg(format!("{target}.2.{}", self.glibc));
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
        Ok(self::target().join(target).join(PROFILE).join(self.binary))
    }

    /// Refuses a program that its cloud's loader would refuse.
    fn check_glibc(&self, program: &[u8]) -> Result<()> {
        match newest_glibc(program) {
            Some(minor) if minor > self.glibc => Err(format!(
                "the program needs glibc 2.{minor}, and {} has 2.{}: install cargo-zigbuild (pip install cargo-zigbuild), with \
             which it is linked against that one, or build on an older system",
                self.system, self.glibc
            )),
            _ => Ok(()),
        }
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
fn write_zip(
    path: &Path,
    name: &str,
    program: &[u8],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o755);
    let mut archive = ZipWriter::new(File::create(path)?);
    archive.start_file(name, options)?;
    archive.write_all(program)?;
    archive.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_newest_glibc_is_found() {
        assert_eq!(
            newest_glibc(b"..\0GLIBC_2.17\0GLIBC_2.34\0GLIBC_2.2.5\0"),
            Some(34)
        );
        assert_eq!(newest_glibc(b"no names"), None);
        let shipped = Shipped {
            package: "handler",
            binary: "handler",
            system: "theirs",
            glibc: 34,
        };
        assert_eq!(shipped.check_glibc(b"\0GLIBC_2.34\0"), Ok(()));
        let refused = shipped.check_glibc(b"\0GLIBC_2.35\0").unwrap_err();
        assert!(
            refused.contains("needs glibc 2.35, and theirs has 2.34"),
            "{refused}"
        );
    }

    #[test]
    fn the_same_program_gives_the_same_zip() {
        let folder = env::temp_dir().join(format!("firstclaim-dist-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [one, other] = ["one.zip", "other.zip"].map(|name| {
            write_zip(&folder.join(name), "bootstrap", b"program").unwrap();
            fs::read(folder.join(name)).unwrap()
        });
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(one, other);
        assert!(one.windows(9).any(|window| window == b"bootstrap"));
    }
}
