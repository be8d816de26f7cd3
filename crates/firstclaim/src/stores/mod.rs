//! Claim stores by their URLs: which one a command works on.

#[cfg(feature = "aws")]
mod dynamodb;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::{error::Error, fmt::Debug, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use identity_core::claim::ClaimStore;

use crate::{failure::Failure, features::Feature};

/// A kind of store.
struct Scheme {
    /// What its URLs begin with, before the colon.
    names: &'static [&'static str],
    /// Its URLs, for people.
    shape: &'static str,
    /// Its name, for people.
    product: &'static str,
    read: Feature<Read>,
}

/// Reads a URL of one of the scheme's names, and what follows the colon.
type Read = fn(&str, &str) -> Result<Box<dyn Store>, Failure>;

/// The kinds of stores there are.
const SCHEMES: &[Scheme] = &[
    Scheme {
        names: &["sqlite"],
        shape: "sqlite:PATH",
        product: "SQLite",
        read: Feature::Built(sqlite::read),
    },
    Scheme {
        names: &["postgres", "postgresql"],
        shape: "postgres://HOST/DATABASE",
        product: "PostgreSQL",
        read: built_with!("postgres", postgres::read),
    },
    Scheme {
        names: &["dynamodb"],
        shape: "dynamodb://TABLE",
        product: "DynamoDB",
        read: built_with!("aws", dynamodb::read),
    },
    Scheme {
        names: &["memory"],
        shape: "memory:",
        product: "this process's memory",
        read: Feature::Built(memory::read),
    },
];

/// A store that a URL names.
#[async_trait]
pub(crate) trait Store: Debug + Send + Sync {
    /// The files that it is made of, by their full paths.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Opens it. If there is none it is made, where the program can make one.
    async fn open(&self) -> Result<Arc<dyn ClaimStore>, Failure>;

    /// Opens it if there is one: looking at claims makes none.
    async fn open_if_there(&self) -> Result<Option<Arc<dyn ClaimStore>>, Failure>;

    /// What is said where there must be one and is none.
    fn missing(&self) -> String;

    /// Opens it; it must be there.
    async fn open_existing(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        self.open_if_there()
            .await?
            .ok_or_else(|| Failure::usage(self.missing()))
    }
}

/// Reads a `--store`. A URL that is not understood is told by its scheme alone: it may hold a password.
pub(crate) fn parse(url: &str) -> Result<Box<dyn Store>, Failure> {
    let split = url.split_once(':');
    let known = split.and_then(|(name, rest)| {
        let scheme = SCHEMES.iter().find(|scheme| scheme.names.contains(&name))?;
        Some((scheme, rest))
    });
    let Some((scheme, rest)) = known else {
        return Err(unknown(url, split));
    };
    let read = scheme.read.built(scheme.product)?;
    read(url, rest)
}

fn unknown(url: &str, split: Option<(&str, &str)>) -> Failure {
    let shown = match split {
        Some((scheme, rest)) if rest.contains('@') => format!("{scheme}:…"),
        _ => url.to_owned(),
    };
    let shapes: Vec<_> = SCHEMES.iter().map(|scheme| scheme.shape).collect();
    let (last, others) = shapes.split_last().unwrap_or((&"", &[]));
    Failure::usage(format!(
        "the store {shown:?} is not known: expected {} or {last}",
        others.join(", ")
    ))
}

/// What every store says of a URL of its scheme that is none.
#[cfg(any(feature = "aws", feature = "postgres"))]
fn unusable(error: impl Error + Send + Sync + 'static) -> Failure {
    Failure::usage("the store's URL cannot be used").because(error)
}

/// … and of one that cannot be opened.
fn unopened(error: impl Error + Send + Sync + 'static) -> Failure {
    Failure::failed("the claim store cannot be opened").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_its_store() {
        for (url, missing) in [
            ("sqlite:a/b.db", "there is no claim store at a/b.db"),
            (
                "memory:",
                "the store memory: lasts only as long as one command, so it has no claims to show",
            ),
        ] {
            assert_eq!(parse(url).unwrap().missing(), missing);
        }
        for url in ["", "a.db", "sqlite:", "memory:x", "mysql://x"] {
            assert!(parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_url_that_is_not_understood_is_answered_with_those_that_are() {
        let told = "the store \"mysql://x\" is not known: expected sqlite:PATH, postgres://HOST/DATABASE, dynamodb://TABLE \
                    or memory:";
        assert_eq!(parse("mysql://x").unwrap_err().to_string(), told);
    }

    #[test]
    fn a_url_that_is_not_understood_keeps_its_password() {
        for url in [
            "postgress://u:secret@h/d",
            "postgres://u:secret@h:port/d",
            "postgres://u@h/d?passwd=secret",
        ] {
            let error = parse(url).unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(!told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn a_store_that_this_build_is_without_is_told_with_the_feature_that_brings_it() {
        for (url, product, feature, built) in [
            (
                "postgres://u:secret@h/d",
                "PostgreSQL",
                "postgres",
                cfg!(feature = "postgres"),
            ),
            (
                "postgresql://h/d",
                "PostgreSQL",
                "postgres",
                cfg!(feature = "postgres"),
            ),
            ("dynamodb://jobs", "DynamoDB", "aws", cfg!(feature = "aws")),
        ] {
            let told = format!(
                "this program was built without {product}: build it with `cargo build -p firstclaim --features {feature}`"
            );
            match parse(url) {
                Ok(_) => assert!(built, "{url}"),
                Err(error) => assert_eq!((error.to_string(), built), (told, false)),
            }
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_postgresql_database_is_a_store() {
        for scheme in ["postgres", "postgresql"] {
            let store = parse(&format!("{scheme}://u:secret@h/d")).unwrap();
            assert_eq!(
                format!("{store:?}"),
                "Postgres(PostgresUrl(postgres://h/d))"
            );
        }
    }

    #[cfg(feature = "aws")]
    #[test]
    fn a_dynamodb_table_is_a_store() {
        let store = parse("dynamodb://jobs.prod").unwrap();
        assert_eq!(format!("{store:?}"), "Dynamo { table: \"jobs.prod\" }");
        for url in [
            "dynamodb:",
            "dynamodb://",
            "dynamodb://a/b",
            "dynamodb://jobs?region=x",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
    }
}
