//! What a command inherits of the environment in which it is started.

use super::error::ContractError;

/// What every command is given: without it few programs find themselves, and nothing in it is a secret.
const ALWAYS: [&str; 7] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_*",
    "TZ",
];

/// What lets its holder act as this program does, or as whoever started it. A file that somebody uploads may make a
/// program read its own environment: no command has these unless the contract names them.
///
/// - <https://docs.aws.amazon.com/sdkref/latest/guide/environment-variables.html>
/// - <https://learn.microsoft.com/azure/developer/go/sdk/authentication/authentication-overview>, and
///   <https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference>
/// - <https://cloud.google.com/docs/authentication/application-default-credentials>
/// - <https://www.postgresql.org/docs/current/libpq-envars.html>
const CREDENTIALS: [&str; 20] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_CONTAINER_*",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CLIENT_SECRET",
    "AZURE_CLIENT_CERTIFICATE_*",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_PASSWORD",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AzureWebJobsStorage*",
    "IDENTITY_HEADER",
    "MSI_SECRET",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "PGPASSWORD",
    // The store's URL may hold a password.
    "FIRSTCLAIM_STORE",
    "FIRSTCLAIM_PUSH_AUTH",
];

/// Which variables a command inherits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Inherited {
    /// All but credentials.
    #[default]
    Usual,
    /// These, and what every command is given.
    Only(Vec<String>),
}

impl Inherited {
    /// The variables of these names; `AWS_*` stands for all whose names begin with `AWS_`.
    pub(super) fn only(names: &[&str]) -> Result<Self, ContractError> {
        for (index, &name) in names.iter().enumerate() {
            let plain = name.strip_suffix('*').unwrap_or(name);
            if name.is_empty() || plain.contains(['*', '=', '\0']) {
                return Err(ContractError::NoVariable {
                    index,
                    got: name.to_owned(),
                });
            }
        }
        Ok(Self::Only(names.iter().map(ToString::to_string).collect()))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        if ALWAYS.iter().any(|known| is_named(name, known)) {
            return true;
        }
        match self {
            Self::Usual => !CREDENTIALS.iter().any(|known| is_named(name, known)),
            Self::Only(names) => names.iter().any(|known| is_named(name, known)),
        }
    }
}

fn is_named(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_inherited_only_by_name() {
        let usual = Inherited::default();
        for name in [
            "PATH",
            "DB_PASSWORD",
            "AWS_REGION",
            "AWS_PROFILE",
            "GDAL_SKIP",
            "",
        ] {
            assert!(usual.has(name), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            "AZURE_CLIENT_CERTIFICATE_PATH",
            "AzureWebJobsStorage__accountKey",
            "PGPASSWORD",
            "FIRSTCLAIM_STORE",
        ] {
            assert!(!usual.has(name), "{name}");
            assert!(Inherited::only(&[name]).unwrap().has(name), "{name}");
        }
    }

    #[test]
    fn a_list_is_all_there_is_beside_what_programs_need() {
        let only = Inherited::only(&["GDAL_*", "DB"]).unwrap();
        for (name, has) in [
            ("GDAL_SKIP", true),
            ("GDAL_", true),
            ("DB", true),
            ("DB_PASSWORD", false),
            ("XGDAL_SKIP", false),
            ("LC_ALL", true),
            ("PATH", true),
            ("AWS_PROFILE", false),
        ] {
            assert_eq!(only.has(name), has, "{name}");
        }
        assert!(Inherited::only(&["*"]).unwrap().has("AWS_SESSION_TOKEN"));
    }

    #[test]
    fn a_name_that_no_variable_has_is_an_error() {
        for bad in ["", "A=B", "A\0", "A*B", "**"] {
            assert!(Inherited::only(&["A", bad]).is_err(), "{bad:?}");
        }
    }
}
