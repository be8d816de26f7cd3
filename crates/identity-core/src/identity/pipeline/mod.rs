//! The pipeline contract: `pipeline.toml`, read and checked whole, with the deriver that it means.
//!
//! ```toml
//! name    = "scenes"                       # required: two pipelines on one store are not one job
//! version = "3.2.0"                        # required: bumping it re-runs every job
//! scheme  = "strict"                       # required: strict | reference | ingest
//! [params]                                 # every knob that changes the output; see `params`
//! tile_px = 512
//! [select]                                 # which objects are jobs; see `select`
//! include = ["**/*.shp", "**/*.tif"]
//! exclude = ["tmp/**"]
//! folders = false                          # whether the empty object of a folder is one, too
//! [job]                                    # what is run; see `job`
//! exec = ["echo", "{uri}"]                 # or dispatch = true: hand the job to a queue
//! permanent = [65]
//! timeout_seconds = 3600
//! ```
//!
//! There are no other keys: an unknown one is an error that names the nearest known one.

pub mod job;
pub mod select;
pub mod template;

mod environment;
mod error;
mod script;
mod table;

use super::{Deriver, Params, ParamsError, Scheme, hex};

pub use error::ContractError;
pub use job::{ExecSpec, JobSpec, Work};
pub use select::{Selected, Selection};
pub use template::{ArgTemplate, Placeholder};

use table::Section;

/// A checked pipeline contract.
#[derive(Debug, Clone)]
pub struct Contract {
    name: String,
    version: String,
    params: Params,
    select: Selection,
    job: Option<JobSpec>,
    digest: String,
    deriver: Deriver,
}

impl Contract {
    /// Reads and checks the text of a `pipeline.toml`.
    ///
    /// # Errors
    ///
    /// A [`ContractError`] that says which key is wrong, with what was found and what is expected.
    pub fn parse(toml_text: &str) -> Result<Self, ContractError> {
        let table: toml::Table = toml_text.parse().map_err(|source| ContractError::Syntax {
            source: Box::new(source),
        })?;
        let top = Section::new(
            "",
            &table,
            &["name", "version", "scheme", "params", "select", "job"],
        )?;
        let name = identity_text(&top, "name")?;
        let version = identity_text(&top, "version")?;
        let scheme_name = top.required_string("scheme")?;
        let scheme =
            Scheme::from_name(scheme_name).ok_or_else(|| ContractError::UnknownScheme {
                got: scheme_name.to_owned(),
            })?;
        let params = match top.table("params")? {
            Some(table) => Params::from_toml(table)?,
            None => Params::default(),
        };
        let select = match top.table("select")? {
            Some(table) => Selection::from_toml(table)?,
            None => Selection::default(),
        };
        let job = top.table("job")?.map(JobSpec::from_toml).transpose()?;
        let deriver = Deriver::new(name, version, scheme, &params).map_err(ParamsError::Refused)?;
        Ok(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            params,
            select,
            job,
            digest: hex::sha256_hex(toml_text.as_bytes()),
            deriver,
        })
    }

    /// The contract of a command that is given a scheme and no file: name `default`, version `0.0.0`, no parameters,
    /// every object selected, no job. Its digest is that of an empty file.
    #[must_use]
    pub fn default_for(scheme: Scheme) -> Self {
        let (name, version) = ("default", "0.0.0");
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            params: Params::default(),
            select: Selection::default(),
            job: None,
            digest: hex::sha256_hex(b""),
            deriver: Deriver::without_params(name, version, scheme),
        }
    }

    /// The pipeline's name: not empty, without control characters.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pipeline's version: not empty, without control characters. Bumping it re-runs every job.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How job IDs are derived.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.deriver.scheme()
    }

    /// Every knob that changes the output.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Which objects are jobs.
    #[must_use]
    pub fn select(&self) -> &Selection {
        &self.select
    }

    /// What is run; `None` if the file has no `[job]`.
    #[must_use]
    pub fn job(&self) -> Option<&JobSpec> {
        self.job.as_ref()
    }

    /// The contract digest: SHA-256 of the whole file, `[job]` and comments included, 64 lower-case hex characters.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Derives this contract's job IDs.
    #[must_use]
    pub fn deriver(&self) -> &Deriver {
        &self.deriver
    }
}

/// A name or version: it stands in logs, tables and digests, so it is a line of visible text.
fn identity_text<'a>(top: &Section<'a>, key: &'static str) -> Result<&'a str, ContractError> {
    let text = top.required_string(key)?;
    if text.trim().is_empty() {
        return Err(ContractError::Blank { key });
    }
    if text.chars().any(char::is_control) {
        return Err(ContractError::ControlCharacter {
            key,
            got: text.to_owned(),
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
