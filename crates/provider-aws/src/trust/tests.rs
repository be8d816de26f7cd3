//! Trust, shown by a server with a certificate of an authority of these tests' own. The three files beside this one:
//! `openssl req -x509 …` for the authority, and a certificate for `localhost` that it signed. They end in 2126.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use aws_config::Region;
use aws_sdk_dynamodb::config::Credentials;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::testing::{Says, reply};
use crate::{DynamoStore, config};

const AUTHORITY: &str = include_str!("authority.pem");

/// A table's service that speaks TLS alone and knows no claim; its URL.
fn server() -> String {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let stream = StreamOwned::new(session, connection.unwrap());
            // A client that does not trust this server goes away.
            let _ = reply(stream, &Says::answer(200, "{}"));
        }
    });
    format!("https://localhost:{port}")
}

async fn reads_with(trust: TrustStore) -> Result<(), String> {
    let config = config::loader_with(crate::http::client(trust))
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(server())
        .load()
        .await;
    let store = DynamoStore::new(aws_sdk_dynamodb::Client::new(&config), "claims");
    let read = store.warm().await;
    read.map_err(|error| identity_core::text::error_chain(&error))
}

fn file(content: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    file
}

#[tokio::test]
async fn a_server_is_trusted_for_the_authority_in_the_file_alone() {
    let trust = of_file(file(AUTHORITY).path()).unwrap();
    assert_eq!(reads_with(trust).await, Ok(()));
    let error = reads_with(of_system()).await.unwrap_err();
    assert!(error.contains("UnknownIssuer"), "{error}");
}

#[test]
fn a_file_with_anything_that_cannot_be_used_is_left_to_the_sdk() {
    let middle = AUTHORITY.len() / 2;
    let torn = format!("{}{}", &AUTHORITY[..middle - 4], &AUTHORITY[middle..]);
    let other = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
    for unusable in [
        String::new(),
        "no certificate".to_owned(),
        torn.clone(),
        format!("{AUTHORITY}{torn}"),
        format!("{AUTHORITY}{other}"),
    ] {
        assert!(of_file(file(&unusable).path()).is_none(), "{unusable}");
    }
    let missing = file("").path().with_extension("missing");
    assert!(of_file(&missing).is_none());
    assert!(of_file(file(&format!("# two\n{AUTHORITY}\n{AUTHORITY}")).path()).is_some());
}
