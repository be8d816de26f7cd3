//! The HTTP client that all services' clients of a process share: one pool of connections, rustls.

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

/// A client through the proxies that the environment names: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or
/// not, as the AWS CLI reads them. <https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-proxy.html>
pub(crate) fn client_through_proxies() -> SharedHttpClient {
    let connect = |settings: Option<&HttpConnectorSettings>,
                   components: Option<&RuntimeComponents>| {
        let mut connector = Connector::builder()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .proxy_config(ProxyConfig::from_env());
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.build()
    };
    SharedHttpClient::new(OnUse(Builder::new().build_with_connector_fn(connect)))
}

/// A client for servers that these authorities vouch for, which are called directly.
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
