//! The suites: what each is built of, which of the tests are its own, and the servers beside them.

use crate::{
    run::Result,
    servers::{
        Server, dynalite, moto,
        postgres::{self, Disk, Tls},
    },
};

/// Tests that need the same servers.
#[derive(Debug)]
pub(crate) struct Suite {
    /// What it is called on the command line.
    pub(super) name: &'static str,
    /// What is built for it; none for the whole workspace but what other suites alone have.
    packages: &'static [&'static str],
    /// Those of them that no other suite builds: they bring an SDK, which takes minutes.
    own: &'static [&'static str],
    features: &'static [&'static str],
    /// The targets whose tests are run, in the words of `cargo test`.
    pub(super) targets: &'static [&'static str],
    /// A target of them that has tests, so that dependencies are built with what tests need of them.
    target: &'static str,
    /// Which of their tests, in the words of libtest.
    pub(super) filter: &'static [&'static str],
    pub(crate) servers: fn() -> Result<Vec<Server>>,
}

/// All of them, in the order in which they are run.
pub(crate) static SUITES: [Suite; 3] = [PLAIN, SQL, AWS];

/// All that needs no server.
const PLAIN: Suite = Suite {
    name: "plain",
    packages: &[],
    own: &[],
    features: &[],
    targets: &[],
    target: "cli",
    filter: &[],
    servers: || Ok(Vec::new()),
};

/// PostgreSQL.
const SQL: Suite = Suite {
    name: "sql",
    packages: &["firstclaim", "provider-sql", "tests"],
    own: &[],
    features: &[
        "firstclaim/postgres",
        "provider-sql/postgres",
        "tests/postgres",
    ],
    targets: &["--lib", "--bins", "--test", "stores"],
    target: "stores",
    filter: &["postgres"],
    servers: || {
        Ok(vec![
            postgres::start(Tls::Off, Disk::Ignored)?,
            postgres::start(Tls::On, Disk::Ignored)?,
        ])
    },
};

/// The function, DynamoDB, S3 and SQS on emulators, and `deploy/aws` by Terraform.
const AWS: Suite = Suite {
    name: "aws",
    packages: &["firstclaim", "handler-lambda", "provider-aws", "tests"],
    own: &["handler-lambda", "provider-aws"],
    features: &["firstclaim/aws", "provider-aws/emulators", "tests/aws"],
    targets: &["--lib", "--bins", "--test", "clouds"],
    target: "clouds",
    filter: &["--skip", "sqlite::", "--skip", "postgres::"],
    servers: || Ok(vec![moto::start()?, dynalite::start()?]),
};

impl Suite {
    /// Whether it needs no server.
    pub(super) fn is_plain(&self) -> bool {
        self.packages.is_empty()
    }

    /// Whether `deploy/aws` is part of it.
    pub(super) fn has_terraform(&self) -> bool {
        self.name == AWS.name
    }
}

/// What is built together. Suites with servers are: each choice of packages and features builds dependencies anew.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) name: String,
    suites: Vec<&'static str>,
    /// In cargo's words.
    pub(super) words: Vec<String>,
    /// The same without what has a profile of its own for its tests.
    pub(super) tested: Vec<String>,
}

impl Selection {
    /// Whether it is built for this suite.
    pub(super) fn has(&self, suite: &Suite) -> bool {
        self.suites.contains(&suite.name)
    }

    /// How a program is built so that all that it stands on is built already.
    pub(super) fn as_built(&self, suite: &Suite) -> String {
        format!("{} --test {}", self.tested.join(" "), suite.target)
    }
}

/// The suites with these names, in their own order; all of them for no name.
pub(super) fn named(names: &[&str]) -> Result<Vec<&'static Suite>> {
    let is_known = |name: &&str| SUITES.iter().any(|suite| suite.name == *name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        let known = known.join(", ");
        return Err(format!("there is no suite {unknown}: there are {known}"));
    }
    let suites = SUITES.iter();
    Ok(suites
        .filter(|suite| names.is_empty() || names.contains(&suite.name))
        .collect())
}

/// What is built for these suites.
pub(super) fn selections(suites: &[&'static Suite]) -> Vec<Selection> {
    let (plain, with_servers): (Vec<&'static Suite>, Vec<&'static Suite>) =
        suites.iter().copied().partition(|suite| suite.is_plain());
    let mut selections = Vec::new();
    for suite in plain {
        let mut words = vec!["--workspace".to_owned()];
        let elsewhere = SUITES.iter().flat_map(|suite| suite.own);
        for package in elsewhere {
            words.extend(["--exclude".to_owned(), (*package).to_owned()]);
        }
        let proof = ["--exclude", "proof"].map(str::to_owned);
        selections.push(Selection {
            name: suite.name.to_owned(),
            suites: vec![suite.name],
            tested: [&words[..], &proof].concat(),
            words,
        });
    }
    if !with_servers.is_empty() {
        let mut words = Vec::new();
        for package in distinct(&with_servers, |suite| suite.packages) {
            words.extend(["-p".to_owned(), package.to_owned()]);
        }
        words.push("--features".to_owned());
        words.push(distinct(&with_servers, |suite| suite.features).join(","));
        let suites: Vec<_> = with_servers.iter().map(|suite| suite.name).collect();
        selections.push(Selection {
            name: suites.join(" and "),
            suites,
            tested: words.clone(),
            words,
        });
    }
    selections
}

/// What the suites name, each once.
fn distinct(
    suites: &[&'static Suite],
    of: fn(&Suite) -> &'static [&'static str],
) -> Vec<&'static str> {
    let mut all = Vec::new();
    for name in suites.iter().flat_map(|suite| of(suite)) {
        if !all.contains(name) {
            all.push(*name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(names: &[&str]) -> Vec<String> {
        let selections = selections(&named(names).unwrap());
        selections
            .iter()
            .map(|selection| selection.words.join(" "))
            .collect()
    }

    #[test]
    fn suites_with_servers_are_built_together_and_the_plain_one_without_sdk() {
        let all = words(&[]);
        assert_eq!(all.len(), 2);
        assert_eq!(
            all[0],
            "--workspace --exclude handler-lambda --exclude provider-aws"
        );
        assert_eq!(
            all[1],
            "-p firstclaim -p provider-sql -p tests -p handler-lambda -p provider-aws --features \
             firstclaim/postgres,provider-sql/postgres,tests/postgres,firstclaim/aws,provider-aws/emulators,tests/aws"
        );
        assert_eq!(words(&["sql"])[0].matches("aws").count(), 0);
    }

    #[test]
    fn a_suite_that_is_not_known_is_told_with_those_that_are() {
        let told = named(&["aws", "gpc"]).unwrap_err();
        assert_eq!(told, "there is no suite gpc: there are plain, sql, aws");
    }
}
