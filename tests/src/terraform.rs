//! `deploy/aws` applied to emulated services: a copy of its files, the emulator's addresses beside them, Terraform run on both.
//!
//! Nothing is destroyed: the emulator is thrown away, and so is the copy.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::root;

const INSTALL: &str = "the checks of deploy/aws need Terraform 1.9 or newer: https://developer.hashicorp.com/terraform/install";

/// The services that `deploy/aws` uses, by the provider's names for them.
const SERVICES: [&str; 11] = [
    "cloudwatch",
    "cloudwatchlogs",
    "dynamodb",
    "events",
    "iam",
    "lambda",
    "s3",
    "scheduler",
    "sns",
    "sqs",
    "sts",
];

/// What moto 5.2 cannot hold, each put out of the way.
const LEFT_OUT: &str = r#"
# moto forgets RedriveAllowPolicy, and the provider waits until it can be read.
resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  count = 0
}
"#;

/// A zip with nothing in it, for deployments whose function is not run.
const EMPTY_ZIP: &[u8] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A copy of `deploy/aws` that is set up for an emulator.
#[derive(Debug)]
pub struct Deployment {
    folder: TempDir,
    variables: Vec<String>,
}

impl Deployment {
    /// Copies the files and fetches the provider. The function's zip is empty and its queue is not polled, unless the
    /// variables (name and value) say otherwise.
    pub fn new(moto: &str, variables: &[(&str, &str)]) -> Self {
        without_containers(moto);
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(root().join("deploy/aws")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "tf") {
                fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
            }
        }
        let endpoints: String = SERVICES
            .iter()
            .map(|service| format!("    {service} = \"{moto}\"\n"))
            .collect();
        let provider = format!(
            "provider \"aws\" {{\n  region = \"eu-central-1\"\n  access_key = \"test\"\n  secret_key = \"test\"\n  \
             skip_credentials_validation = true\n  skip_metadata_api_check = true\n  s3_use_path_style = true\n\n  \
             endpoints {{\n{endpoints}  }}\n}}\n{LEFT_OUT}"
        );
        fs::write(folder.path().join("override.tf"), provider).unwrap();
        fs::write(folder.path().join("empty.zip"), EMPTY_ZIP).unwrap();
        fs::write(folder.path().join("terraform.rc"), installation()).unwrap();
        let deployment = Self {
            folder,
            variables: [("zip", "empty.zip"), ("poll", "false")]
                .iter()
                .chain(variables)
                .map(|(name, value)| format!("-var={name}={value}"))
                .collect(),
        };
        deployment.succeeds(&["init", "-input=false"]);
        deployment
    }

    /// Makes everything, and returns the outputs: a JSON object, name → value.
    pub fn apply(&self) -> Value {
        self.succeeds(&self.with_variables(&["apply", "-auto-approve", "-input=false"]));
        let outputs: Value = serde_json::from_str(&self.succeeds(&["output", "-json"])).unwrap();
        let outputs = outputs.as_object().unwrap();
        outputs
            .iter()
            .map(|(name, output)| (name.clone(), output["value"].clone()))
            .collect()
    }

    /// What would be done if these variables were set too, as `terraform show -json` tells it.
    pub fn plan(&self, variables: &[(&str, &str)]) -> Value {
        let plan = tempfile::NamedTempFile::new().unwrap();
        let path = plan.path().to_str().unwrap();
        self.succeeds(&self.planning(variables, &[&format!("-out={path}")]));
        serde_json::from_str(&self.succeeds(&["show", "-json", path])).unwrap()
    }

    /// Makes the change that these variables are, and returns the plan of it. Nobody else changes what was made: the state
    /// is taken for it.
    pub fn change(&self, variables: &[(&str, &str)]) -> Value {
        let plan = tempfile::NamedTempFile::new().unwrap();
        let path = plan.path().to_str().unwrap();
        let options = [&format!("-out={path}"), "-refresh=false"];
        self.succeeds(&self.planning(variables, &options));
        self.succeeds(&["apply", "-input=false", path]);
        serde_json::from_str(&self.succeeds(&["show", "-json", path])).unwrap()
    }

    /// What is said to these variables, which must be refused.
    pub fn refusal(&self, variables: &[(&str, &str)]) -> String {
        let output = self.run(&self.planning(variables, &[]));
        assert!(!output.status.success(), "{variables:?} is not refused");
        // Long lines are broken, and framed.
        let said = String::from_utf8(output.stderr).unwrap();
        said.replace(['│', '╷', '╵'], " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// What was made, as `terraform show -json` tells it.
    pub fn state(&self) -> Value {
        serde_json::from_str(&self.succeeds(&["show", "-json"])).unwrap()
    }

    /// Checks the files by themselves.
    pub fn validate(&self) {
        self.succeeds(&["validate"]);
    }

    fn planning(&self, variables: &[(&str, &str)], options: &[&str]) -> Vec<String> {
        // Plans change nothing, and may be made side by side.
        let mut arguments = self.with_variables(&["plan", "-input=false", "-lock=false"]);
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        arguments.extend(
            variables
                .iter()
                .map(|(name, value)| format!("-var={name}={value}")),
        );
        arguments
    }

    fn with_variables(&self, arguments: &[&str]) -> Vec<String> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        arguments.chain(self.variables.iter().cloned()).collect()
    }

    /// Runs Terraform to its end, which must be a good one, and returns what it said.
    fn succeeds(&self, arguments: &[impl AsRef<std::ffi::OsStr> + std::fmt::Debug]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stdout).unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "terraform {arguments:?}:\n{said}\n{complaints}"
        );
        said
    }

    fn run(&self, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Output {
        let mut terraform = terraform(self.folder.path());
        if std::env::var_os("TF_CLI_CONFIG_FILE").is_none_or(|file| !Path::new(&file).exists()) {
            let file = self.folder.path().join("terraform.rc");
            terraform.env("TF_CLI_CONFIG_FILE", file);
        }
        terraform.args(arguments).arg("-no-color");
        terraform
            .output()
            .unwrap_or_else(|error| panic!("terraform cannot be started: {error}\n{INSTALL}"))
    }
}

/// Terraform in a folder, without settings of the person who runs the tests.
pub fn terraform(folder: &Path) -> Command {
    let mut terraform = Command::new("terraform");
    terraform.current_dir(folder).env("CHECKPOINT_DISABLE", "1");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("AWS_")
            || name.starts_with("TF_VAR_")
            || name.starts_with("TF_CLI_ARGS")
        {
            terraform.env_remove(name);
        }
    }
    terraform
}

/// Where Terraform gets its provider: from a folder of this machine that has it, else from the registry.
fn installation() -> String {
    match mirror() {
        Some(folder) => format!(
            "provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n",
            folder.to_string_lossy()
        ),
        None => String::new(),
    }
}

/// A folder with the AWS provider in it: one of those that Terraform looks into by itself, or one in which a machine's
/// owner puts programs.
fn mirror() -> Option<PathBuf> {
    let home = std::env::home_dir().unwrap_or_default();
    let mut folders = vec![
        home.join(".terraform.d/plugins"),
        home.join(".local/share/terraform/plugins"),
    ];
    for parent in ["/usr/local/share", "/usr/share"] {
        folders.push(Path::new(parent).join("terraform/plugins"));
    }
    let entries = fs::read_dir("/opt").map(|entries| entries.flatten().collect::<Vec<_>>());
    folders.extend(entries.unwrap_or_default().iter().map(fs::DirEntry::path));
    folders
        .into_iter()
        .find(|folder| folder.join("registry.terraform.io/hashicorp/aws").is_dir())
}

/// Tells moto to run functions without containers: it looks for an engine when one is made otherwise.
fn without_containers(moto: &str) {
    let address = moto.trim_start_matches("http://").trim_end_matches('/');
    let body = r#"{"lambda":{"use_docker":false}}"#;
    let mut connection = TcpStream::connect(address)
        .unwrap_or_else(|error| panic!("moto does not listen at {moto}: {error}"));
    write!(
        connection,
        "POST /moto-api/config HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{moto}: {answer}");
}
