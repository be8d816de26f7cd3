//! Which certificate authorities a function trusts: the system's, read once.

use std::path::Path;

use aws_smithy_http_client::tls::TrustStore;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The system's authorities, from the one file that has them all. The SDK's own way reads the folder beside that file, too,
/// where each stands once more: a third of a start on Debian.
///
/// Where `SSL_CERT_FILE` or `SSL_CERT_DIR` says something else, or one certificate of the file cannot be used, the SDK reads
/// them in its own way: given such a file by us, it would fail, and by itself it leaves that one out.
pub(crate) fn of_system() -> TrustStore {
    if openssl_probe::has_ssl_cert_env_vars() {
        return TrustStore::default();
    }
    let bundle = openssl_probe::probe().cert_file;
    bundle.and_then(|path| of_file(&path)).unwrap_or_default()
}

/// The authorities in a file, if all of them can be used.
fn of_file(path: &Path) -> Option<TrustStore> {
    let pem = std::fs::read(path).ok()?;
    let mut roots = RootCertStore::empty();
    let usable = CertificateDer::pem_slice_iter(&pem)
        .all(|certificate| certificate.is_ok_and(|certificate| roots.add(certificate).is_ok()));
    (usable && !roots.is_empty()).then(|| TrustStore::empty().with_pem_certificate(pem))
}

#[cfg(test)]
mod tests;
