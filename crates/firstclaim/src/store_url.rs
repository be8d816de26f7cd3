//! Store URLs: which claim store a command works on.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use identity_core::claim::{ClaimStore, memory::MemoryStore};
#[cfg(feature = "aws")]
use provider_aws::{Aws, DynamoStore};
use provider_sql::SqliteStore;
#[cfg(feature = "postgres")]
use provider_sql::{ConnectError, PostgresStore, PostgresUrl};

use crate::failure::Failure;

/// A parsed `--store`.
#[derive(Debug, Clone)]
pub(crate) enum StoreUrl {
    /// One file, shared by any number of processes.
    Sqlite(PathBuf),
    /// One database, shared by any number of machines.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresUrl>),
    /// One DynamoDB table, shared by any number of machines. Region and credentials are the environment's.
    #[cfg(feature = "aws")]
    Dynamo(String),
    /// This process's memory.
    Memory,
}

impl StoreUrl {
    /// Reads `sqlite:PATH`, `postgres://…`, `dynamodb://TABLE` or `memory:`. A URL that is not understood is told by its scheme alone: it may
    /// hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("postgres" | "postgresql", _)) => postgres(url),
            Some(("dynamodb", table)) => dynamo(table.strip_prefix("//").unwrap_or(table)),
            other => {
                let shown = match other {
                    Some((scheme, rest)) if rest.contains('@') => format!("{scheme}:…"),
                    _ => url.to_owned(),
                };
                Err(Failure::usage(format!(
                    "the store {shown:?} is not known: expected sqlite:PATH, postgres://HOST/DATABASE, \
                     dynamodb://TABLE or memory:"
                )))
            }
        }
    }

    /// The files that the store is made of, by their full paths.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let Self::Sqlite(path) = self else {
            return Vec::new();
        };
        let (parent, Some(name)) = (path.parent().unwrap_or(Path::new("")), path.file_name())
        else {
            return Vec::new();
        };
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        let Ok(parent) = parent.canonicalize() else {
            return Vec::new();
        };
        // https://www.sqlite.org/tempfiles.html
        ["", "-wal", "-shm", "-journal"]
            .iter()
            .map(|suffix| {
                let mut file = name.to_owned();
                file.push(suffix);
                parent.join(file)
            })
            .collect()
    }

    /// Opens the store, making it if there is none; a DynamoDB table must be there.
    pub(crate) async fn open(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        match self {
            Self::Sqlite(path) => open_sqlite(path).await,
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                let (wait, connections) = (PostgresStore::WAIT, PostgresStore::CONNECTIONS);
                opened(PostgresStore::connect(url, wait, connections).await)
            }
            #[cfg(feature = "aws")]
            Self::Dynamo(table) => open_dynamo(table).await,
            Self::Memory => Ok(Arc::new(MemoryStore::default())),
        }
    }

    /// Opens the store if there is one: looking at claims makes none.
    pub(crate) async fn open_if_there(&self) -> Result<Option<Arc<dyn ClaimStore>>, Failure> {
        match self {
            Self::Sqlite(path) if !path.exists() => Ok(None),
            Self::Sqlite(path) => open_sqlite(path).await.map(Some),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                let (wait, connections) = (PostgresStore::WAIT, PostgresStore::CONNECTIONS);
                match PostgresStore::connect_existing(url, wait, connections).await {
                    Err(ConnectError::Missing { .. }) => Ok(None),
                    result => opened(result).map(Some),
                }
            }
            #[cfg(feature = "aws")]
            Self::Dynamo(table) => open_dynamo(table).await.map(Some),
            Self::Memory => Ok(None),
        }
    }

    /// Opens a store that must be there.
    pub(crate) async fn open_existing(&self) -> Result<Arc<dyn ClaimStore>, Failure> {
        let missing = match self {
            Self::Sqlite(path) => format!("there is no claim store at {}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => format!("there is no claim store at {url}"),
            #[cfg(feature = "aws")]
            Self::Dynamo(table) => format!("there is no table {table}"),
            Self::Memory => {
                "the store memory: lasts only as long as one command, so it has no claims to show"
                    .to_owned()
            }
        };
        self.open_if_there()
            .await?
            .ok_or_else(|| Failure::usage(missing))
    }
}

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> Result<StoreUrl, Failure> {
    PostgresUrl::parse(url)
        .map(|url| StoreUrl::Postgres(Box::new(url)))
        .map_err(|error| Failure::usage("the store's URL cannot be used").because(error))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<StoreUrl, Failure> {
    Err(Failure::usage(
        "this program was built without PostgreSQL: build it with `cargo build -p firstclaim --features postgres`",
    ))
}

#[cfg(feature = "aws")]
fn dynamo(table: &str) -> Result<StoreUrl, Failure> {
    DynamoStore::check_name(table)
        .map(|()| StoreUrl::Dynamo(table.to_owned()))
        .map_err(|error| Failure::usage("the store's URL cannot be used").because(error))
}

#[cfg(not(feature = "aws"))]
fn dynamo(_: &str) -> Result<StoreUrl, Failure> {
    Err(Failure::usage(
        "this program was built without DynamoDB: build it with `cargo build -p firstclaim --features aws`",
    ))
}

/// Looks whether the table is there and can be read, before anything is done.
#[cfg(feature = "aws")]
async fn open_dynamo(table: &str) -> Result<Arc<dyn ClaimStore>, Failure> {
    let unusable = || Failure::failed("the claim store cannot be opened");
    let aws = Aws::from_env()
        .await
        .map_err(|error| unusable().because(error))?;
    let store = aws.claims(table);
    store
        .warm()
        .await
        .map_err(|error| unusable().because(error))?;
    Ok(Arc::new(store))
}

async fn open_sqlite(path: &Path) -> Result<Arc<dyn ClaimStore>, Failure> {
    opened(SqliteStore::open(path, SqliteStore::LOCK_WAIT).await)
}

fn opened<S, E>(result: Result<S, E>) -> Result<Arc<dyn ClaimStore>, Failure>
where
    S: ClaimStore,
    E: std::error::Error + Send + Sync + 'static,
{
    match result {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(Failure::failed("the claim store cannot be opened").because(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_its_store() {
        let sqlite = StoreUrl::parse("sqlite:a/b.db").unwrap();
        assert!(matches!(sqlite, StoreUrl::Sqlite(path) if path == Path::new("a/b.db")));
        let memory = StoreUrl::parse("memory:").unwrap();
        assert!(matches!(memory, StoreUrl::Memory));
        for url in ["", "a.db", "sqlite:", "memory:x", "mysql://x"] {
            assert!(StoreUrl::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_url_that_is_not_understood_keeps_its_password() {
        for url in [
            "postgress://u:secret@h/d",
            "postgres://u:secret@h:port/d",
            "postgres://u@h/d?passwd=secret",
        ] {
            let error = StoreUrl::parse(url).unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(!told.contains("secret"), "{told}");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_postgresql_database_is_a_store() {
        for scheme in ["postgres", "postgresql"] {
            let url = StoreUrl::parse(&format!("{scheme}://u:secret@h/d")).unwrap();
            assert_eq!(format!("{url:?}"), "Postgres(PostgresUrl(postgres://h/d))");
        }
    }

    #[cfg(feature = "aws")]
    #[test]
    fn a_dynamodb_table_is_a_store() {
        let url = StoreUrl::parse("dynamodb://jobs.prod").unwrap();
        assert_eq!(format!("{url:?}"), "Dynamo(\"jobs.prod\")");
        for url in [
            "dynamodb:",
            "dynamodb://",
            "dynamodb://a/b",
            "dynamodb://jobs?region=x",
        ] {
            assert!(StoreUrl::parse(url).is_err(), "{url}");
        }
    }

    #[cfg(not(feature = "aws"))]
    #[test]
    fn without_the_feature_a_dynamodb_url_says_how_to_build_it() {
        let error = StoreUrl::parse("dynamodb://jobs").unwrap_err();
        assert!(error.to_string().contains("--features aws"), "{error}");
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn without_the_feature_a_postgresql_url_says_how_to_build_it() {
        let error = StoreUrl::parse("postgres://u:secret@h/d").unwrap_err();
        assert!(error.to_string().contains("--features postgres"), "{error}");
    }
}
