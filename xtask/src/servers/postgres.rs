//! PostgreSQL, with its data in a folder that is gone afterwards.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{Port, Ready, Server, free_port, made, output};
use crate::run::Result;

const INSTALL: &str = "the checks need a PostgreSQL server (Debian: apt-get install postgresql)";

/// Whether the server has a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    /// It has one, made by itself, for 127.0.0.1.
    On,
    /// It knows no secure connections.
    Off,
}

/// Whether the server waits until what it writes is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// It does, as servers do whose data is to last.
    Waited,
    /// It does not: nothing outlives the tests.
    Ignored,
}

impl Disk {
    fn fsync(self) -> &'static str {
        match self {
            Self::Waited => "on",
            Self::Ignored => "off",
        }
    }
}

/// Starts a server with nothing in it, in which whoever comes may do everything.
pub(crate) fn start(tls: Tls, disk: Disk) -> Result<Server> {
    let programs = programs()?;
    let folder = made(&mut as_server_user(Path::new("mktemp")))?;
    let data = folder.join("data");
    let initdb = [
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "-D",
    ];
    let mut command = as_server_user(&programs.join("initdb"));
    output(command.args(initdb).arg(&data)).map_err(|what| {
        // If it cannot be removed, it is a temporary folder, and the reason is the one to tell.
        let _ = std::fs::remove_dir_all(&folder);
        format!("{what}\n{INSTALL}")
    })?;
    let certificate = folder.join("server.crt");
    let port = free_port()?;
    let mut server = as_server_user(&programs.join("postgres"));
    server.arg("-D").arg(&data).arg("-k").arg(&folder);
    let mut settings = vec![
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "max_connections=300".to_owned(),
        format!("fsync={}", disk.fsync()),
    ];
    if tls == Tls::On {
        self_signed(&folder, &certificate)?;
        let key = folder.join("server.key");
        settings.push("ssl=on".to_owned());
        settings.push(format!("ssl_cert_file={}", certificate.display()));
        settings.push(format!("ssl_key_file={}", key.display()));
    }
    for setting in settings {
        server.args(["-c", &setting]);
    }
    let mut ready = Command::new(programs.join("pg_isready"));
    ready.args(["--quiet", "--host=127.0.0.1", &format!("--port={port}")]);
    // The way to stop it that waits for no client.
    let (port, ready) = (Port::Given(port), Ready::Program(ready));
    let mut server = Server::start(&folder, &server, "QUIT", port, ready)?;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port);
    server.exports = match tls {
        Tls::Off => vec![("TEST_POSTGRES_URL", url)],
        Tls::On => vec![
            ("TEST_POSTGRES_TLS_URL", url),
            ("TEST_POSTGRES_TLS_ROOT", certificate.display().to_string()),
        ],
    };
    Ok(server)
}

/// The folder of the server's programs: the first one on `PATH` that has them, or where Debian keeps them, the newest.
fn programs() -> Result<PathBuf> {
    let mut folders: Vec<_> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let version = |folder: &Path| -> u32 {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.parse().ok()).unwrap_or(0)
    };
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    versions.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    folders.extend(versions.into_iter().map(|folder| folder.join("bin")));
    let needed = ["initdb", "postgres", "pg_isready"];
    folders
        .into_iter()
        .find(|folder| needed.iter().all(|name| folder.join(name).is_file()))
        .ok_or_else(|| {
            format!(
                "neither PATH nor /usr/lib/postgresql has {}\n{INSTALL}",
                needed.join(", ")
            )
        })
}

/// A program as the server's user: the server refuses to run as root, and then it is `postgres`, which its package makes.
fn as_server_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--init-groups"])
        .arg(program)
        .current_dir("/");
    command
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n")
}

/// Makes `server.key` and the certificate. It signs nothing but itself, so that clients can take it for their root.
fn self_signed(folder: &Path, certificate: &Path) -> Result<()> {
    let request = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=firstclaim tests",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
    ];
    let mut command = as_server_user(Path::new("openssl"));
    command.args(request).arg(folder.join("server.key"));
    output(command.arg("-out").arg(certificate))
        .map(|_| ())
        .map_err(|what| {
            format!("{what}\nthe checks need openssl (Debian: apt-get install openssl)")
        })
}
