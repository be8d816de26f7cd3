//! Where a PostgreSQL store is: the URL as people write it, read once, and shown without its password.

use std::fmt;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use url::Url;

/// A `postgres://` URL. `Display` and `Debug` show host and database and nothing else of it.
///
/// What the URL leaves out comes from the environment, as for every PostgreSQL client: `PGHOST`, `PGUSER`, `PGPASSWORD`,
/// `PGSSLMODE` and so on, and the password also from `~/.pgpass`. So it need not stand on a command line.
#[derive(Clone)]
pub struct PostgresUrl {
    pub(super) options: PgConnectOptions,
}

/// Why a text is no URL of a PostgreSQL store. The text itself is not told: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is no URL.
    #[error("this is no URL like postgres://user@host/database")]
    Syntax(#[source] url::ParseError),
    /// It is the URL of something else.
    #[error("expected a URL that begins with postgres:// or postgresql://, got {got}://")]
    Scheme {
        /// Its scheme.
        got: String,
    },
    /// A parameter is not known, so that it would be ignored.
    #[error("the parameter {name:?} is not known: expected one of {}", PARAMETERS.join(", "))]
    Parameter {
        /// Its name.
        name: String,
    },
    /// A part of it cannot have the value that it has.
    #[error("a part of the URL cannot be read")]
    Value(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The parameters of a URL, and `options[NAME]` for any setting of the session.
const PARAMETERS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
];

impl PostgresUrl {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full` and the like, every part but the scheme
    /// optional.
    ///
    /// # Errors
    ///
    /// [`UrlError`], every variant.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let url = Url::parse(text).map_err(UrlError::Syntax)?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(UrlError::Scheme {
                got: url.scheme().to_owned(),
            });
        }
        // sqlx ignores what it does not know, and logs it with its value.
        for (name, _) in url.query_pairs() {
            let session = name.starts_with("options[") && name.ends_with(']');
            if !session && name != "options" && !PARAMETERS.contains(&&*name) {
                return Err(UrlError::Parameter {
                    name: name.into_owned(),
                });
            }
        }
        let mut options = PgConnectOptions::from_url(&url)
            .map_err(|error| match error {
                sqlx::Error::Configuration(source) => UrlError::Value(source),
                error => UrlError::Value(error.into()),
            })?
            .disable_statement_logging();
        if options.get_application_name().is_none() {
            options = options.application_name("firstclaim");
        }
        Ok(Self { options })
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        f.write_str("postgres://")?;
        if options.get_socket().is_none() && !options.get_host().starts_with('/') {
            f.write_str(options.get_host())?;
            if options.get_port() != 5432 {
                write!(f, ":{}", options.get_port())?;
            }
        }
        // Without a name the server takes the user's for the database's.
        let database = options.get_database().unwrap_or(options.get_username());
        write!(f, "/{database}")
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_user_and_password() {
        for (text, shown) in [
            (
                "postgres://u:se%2Fcret@db.example/geo",
                "postgres://db.example/geo",
            ),
            (
                "postgresql://u:secret@db.example:6543/geo?sslmode=require",
                "postgres://db.example:6543/geo",
            ),
            (
                "postgres://h/geo?user=u&password=secret",
                "postgres://h/geo",
            ),
            ("postgres://u:secret@h", "postgres://h/u"),
            ("postgres://u:secret@[::1]:5432/geo", "postgres://[::1]/geo"),
            (
                "postgres://u:secret@%2Frun%2Fpostgresql/geo",
                "postgres:///geo",
            ),
            (
                "postgres:///geo?host=/run/postgresql&user=u&password=secret",
                "postgres:///geo",
            ),
        ] {
            let url = PostgresUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), shown, "{text}");
            assert_eq!(format!("{url:?}"), format!("PostgresUrl({shown})"));
        }
    }

    #[test]
    fn what_is_no_url_of_ours_is_refused_without_its_password() {
        for (text, told) in [
            (
                "postgres",
                "this is no URL like postgres://user@host/database",
            ),
            (
                "postgres://u:secret@h:port/d",
                "this is no URL like postgres://user@host/database",
            ),
            (
                "mysql://u:secret@h/d",
                "expected a URL that begins with postgres:// or postgresql://, got mysql://",
            ),
            (
                "postgres://h/d?passwort=secret",
                "the parameter \"passwort\" is not known: expected one of sslmode, sslrootcert, sslcert, sslkey, \
                 statement-cache-capacity, host, hostaddr, port, dbname, user, password, application_name",
            ),
            (
                "postgres://u:secret@h/d?sslmode=yes",
                "a part of the URL cannot be read",
            ),
            (
                "postgres://u:secret@h/%FF",
                "a part of the URL cannot be read",
            ),
        ] {
            let error = PostgresUrl::parse(text).unwrap_err();
            assert_eq!(error.to_string(), told, "{text}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }

    #[test]
    fn settings_of_the_session_are_part_of_a_url() {
        let url =
            PostgresUrl::parse("postgres://h/d?options[search_path]=a&options=-c%20geqo%3Doff");
        let options = url.unwrap().options;
        assert_eq!(options.get_options(), Some("-c search_path=a -c geqo=off"));
        assert_eq!(options.get_application_name(), Some("firstclaim"));
        let named = PostgresUrl::parse("postgres://h/d?application_name=x")
            .unwrap()
            .options;
        assert_eq!(named.get_application_name(), Some("x"));
    }
}
