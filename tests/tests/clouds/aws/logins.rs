//! The program with what people's own machines have: a proxy, and logins that the AWS CLI made.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
};

use tests::{Ran, Workbench};

/// A server that keeps the head of each request, and answers as DynamoDB does where nothing is found; a tunnel it refuses.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || answer(connection, &kept));
            }
        });
        Self { port, heads }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Whether a request was signed with this key.
    #[track_caller]
    fn assert_signed_with(&self, key: &str, ran: &Ran) {
        let credential = format!("Credential={key}/");
        let heads = self.heads();
        assert!(
            heads.iter().any(|head| head.contains(&credential)),
            "{heads:?} {ran:?}"
        );
    }
}

fn answer(connection: TcpStream, heads: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(&connection);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
    let length = head
        .to_ascii_lowercase()
        .split_once("content-length:")
        .and_then(|(_, rest)| rest.lines().next()?.trim().parse::<usize>().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    let status = if head.starts_with("CONNECT") {
        "403 Forbidden"
    } else {
        "200 OK"
    };
    heads.lock().unwrap().push(head);
    let _ = write!(
        &connection,
        "HTTP/1.1 {status}\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    );
}

/// Somebody's machine: a home with `.aws/config` and what logins left beside it.
fn machine(config: &str, left: &[(&str, &str)]) -> Workbench {
    let bench = Workbench::new("");
    bench.write(".aws/config", config);
    for (path, text) in left {
        bench.write(path, text);
    }
    bench
}

/// `claims list` there, as this profile.
fn list(bench: &Workbench, set: &[(&str, &str)]) -> Ran {
    let mut command: Command = bench.command(&["claims", "list", "--store", "dynamodb://jobs"]);
    for (name, _) in std::env::vars_os() {
        let upper = name.to_string_lossy().to_uppercase();
        if upper.starts_with("AWS_") || upper.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
    command
        .env("HOME", bench.path(""))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(set.iter().copied());
    Ran::from(command.output().unwrap())
}

const STATIC: &str = "[default]\nregion = eu-central-1\naws_access_key_id = AKIDSTATIC\naws_secret_access_key = secret\n";

#[test]
fn calls_go_through_the_proxy_that_the_environment_names() {
    let (proxy, service) = (Server::start(), Server::start());
    let bench = machine(STATIC, &[]);

    let ran = list(&bench, &[("HTTPS_PROXY", &proxy.url())]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let tunnel = "CONNECT dynamodb.eu-central-1.amazonaws.com:443 HTTP/1.1";
    assert!(proxy.heads().iter().all(|head| head.starts_with(tunnel)));
    assert_ne!(proxy.heads().len(), 0, "{ran:?}");

    let direct = [
        ("AWS_ENDPOINT_URL_DYNAMODB", &*service.url()),
        ("http_proxy", &proxy.url()),
        ("no_proxy", "127.0.0.1"),
    ];
    let ran = list(&bench, &direct);
    assert_eq!(ran.code, 0, "{ran:?}");
    service.assert_signed_with("AKIDSTATIC", &ran);
}

#[test]
fn a_login_of_the_cli_is_used() {
    let service = Server::start();
    let bench = machine(
        "[profile maps]\nregion = eu-central-1\nlogin_session = arn:aws:sts::012345678901:assumed-role/maps/ann\n",
        &[(
            // SHA-256 of the session's name.
            ".aws/login/cache/9ef9fdff26562516fb4b91d79b5875242488014ce7c656fd813d8db5655491f0.json",
            r#"{"accessToken": {"accessKeyId": "AKIDLOGIN", "secretAccessKey": "secret", "sessionToken": "token",
                "accountId": "012345678901", "expiresAt": "2099-01-01T00:00:00Z"}, "tokenType": "aws_sigv4",
                "refreshToken": "refresh", "clientId": "arn:aws:signin:::devtools/same-device", "dpopKey": "none"}"#,
        )],
    );
    let set = [
        ("AWS_PROFILE", "maps"),
        ("AWS_ENDPOINT_URL_DYNAMODB", &service.url()),
    ];
    let ran = list(&bench, &set);
    assert_eq!(ran.code, 0, "{ran:?}");
    service.assert_signed_with("AKIDLOGIN", &ran);
}

#[test]
fn a_program_of_the_profile_is_asked_for_credentials() {
    let service = Server::start();
    let bench = machine(
        "[profile maps]\nregion = eu-central-1\ncredential_process = cat credentials.json\n",
        &[(
            "credentials.json",
            r#"{"Version": 1, "AccessKeyId": "AKIDPROCESS", "SecretAccessKey": "secret"}"#,
        )],
    );
    let set = [
        ("AWS_PROFILE", "maps"),
        ("AWS_ENDPOINT_URL_DYNAMODB", &service.url()),
    ];
    let ran = list(&bench, &set);
    assert_eq!(ran.code, 0, "{ran:?}");
    service.assert_signed_with("AKIDPROCESS", &ran);
}

/// The session's token is there, so the portal is asked for the role's credentials: through the proxy, as everything is.
#[test]
fn a_login_through_a_browser_is_used() {
    let proxy = Server::start();
    let bench = machine(
        "[profile maps]\nregion = eu-central-1\nsso_session = maps\nsso_account_id = 012345678901\nsso_role_name = Reader\n\
         [sso-session maps]\nsso_region = eu-west-1\nsso_start_url = https://example.awsapps.com/start\n",
        &[(
            // SHA-1 of the session's name.
            ".aws/sso/cache/7930e06c7ddb2c362f626fb6fb266e8b42b6c447.json",
            r#"{"accessToken": "token", "expiresAt": "2099-01-01T00:00:00Z", "region": "eu-west-1",
                "startUrl": "https://example.awsapps.com/start"}"#,
        )],
    );
    let ran = list(
        &bench,
        &[("AWS_PROFILE", "maps"), ("HTTPS_PROXY", &proxy.url())],
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    let portal = "CONNECT portal.sso.eu-west-1.amazonaws.com:443 HTTP/1.1";
    let heads = proxy.heads();
    assert!(
        heads.iter().any(|head| head.starts_with(portal)),
        "{heads:?} {ran:?}"
    );
}
