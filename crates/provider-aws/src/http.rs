//! The HTTP client that all services' clients of a process share: one pool of connections, rustls.

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

/// A client for servers that these authorities vouch for.
pub(crate) fn client(authorities: TrustStore) -> SharedHttpClient {
    let mut builder = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
    // The SDK's builder cannot fail yet; without it, the system's authorities are trusted.
    if let Ok(tls) = TlsContext::builder().with_trust_store(authorities).build() {
        builder = builder.tls_context(tls);
    }
    SharedHttpClient::new(OnUse(builder.build_https()))
}

/// Connectors are made when they are used. The SDK's client makes one more for each service's client, to have read the
/// authorities by then, and throws it away: half a millisecond of a start for each.
#[derive(Debug)]
struct OnUse(SharedHttpClient);

impl HttpClient for OnUse {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.http_connector(settings, components)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.0.connector_metadata()
    }
}
