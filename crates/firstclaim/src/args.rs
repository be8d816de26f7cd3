//! The command line: every command, flag and example.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use identity_core::{
    claim::{Resender, Status},
    identity::{
        Scheme,
        bundle::{Form, KeyBytes},
    },
};

/// Exactly-once spatial jobs from at-least-once storage events.
#[derive(Debug, Parser)]
#[command(
    name = "firstclaim",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  firstclaim id event.json                          the job ID of each event in an envelope
  firstclaim key parcels.shp                        the upload key of a shapefile's content
  firstclaim explain event.json                     how it is read, and what would be done with it
  firstclaim run --pipeline pipeline.toml inbox/    run the pipeline's job once for each file in a folder
  firstclaim run events/*.json                      … or for each object that storage events name
  firstclaim claims list --status failed            what failed and waits for its next delivery
  firstclaim claims show ID                         why it was skipped, who holds it, what happens next
  firstclaim claims sweep | firstclaim run -        finish what was left undone

Exit codes: 0 all well, 1 something failed or was refused, 2 wrong usage or configuration."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Derive the job IDs of storage events, without claiming or running anything
    Id(IdArgs),
    /// Derive the upload keys of shapefiles from all of their files' bytes
    Key(KeyArgs),
    /// Explain one event: how it is read, what its ID is made of, what its claim says, and what `run` would do
    Explain(ExplainArgs),
    /// Claim and run the pipeline's job for every event or file, each exactly once
    Run(RunArgs),
    /// Look at claims, give them back, and send their events again
    Claims(ClaimsArgs),
    /// Check this build's job IDs and upload keys against files of published ones
    Vectors(VectorsArgs),
    /// Print the completions of a shell, e.g.
    /// `firstclaim completions bash > ~/.local/share/bash-completion/completions/firstclaim`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firstclaim id event.json
  firstclaim id --scheme reference --json event.json
  aws sqs receive-message --queue-url URL | firstclaim id --json -

A FILE is an envelope as a provider delivers it (S3, SQS, SNS, EventBridge; Pub/Sub, Eventarc; Event Grid, CloudEvents,
Storage Queue, Azure Functions), or an HTTP request as {\"method\",\"path\",\"headers\",\"body\"}. With --json, one object a
line for each event in it. An event that carries no version token has no job ID yet (`run` would ask the store for it): its
token and job_id are null, and the exit code is 1.")]
pub(crate) struct IdArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArg,
    /// Derive by this scheme instead of the pipeline's; without a pipeline file, for name `default`, version `0.0.0` and
    /// no parameters
    #[arg(long, value_name = "SCHEME", value_parser = parse_scheme)]
    pub(crate) scheme: Option<Scheme>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Event files; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firstclaim key parcels.shp
  firstclaim key --namespace staging --form strict --no-index inbox/ upload.zip
  firstclaim key --json parcels.shp | jq -r .full_digest

A PATH is a .shp, a .zip, or a folder: of a folder every shapefile in it, at any depth, also those in zips. Of a zip every
shapefile in it, each with the key that it has once unzipped. The files of a shapefile are those of its stem with the
suffix .shp .shx .dbf .prj .cpg .sbn .sbx .qix or .fix, in any case. One line for each: its key, two spaces, its path.

Without options the key is the published program's, so that both can share a ledger. The form strict, which frames names and
contents by their lengths, is for a ledger of your own.")]
pub(crate) struct KeyArgs {
    /// Keeps environments and data sets apart: keys of two namespaces differ
    #[arg(long, value_name = "NS", default_value = "parcels-ingest")]
    pub(crate) namespace: String,
    /// Bump it, and every key changes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) algo_version: u64,
    /// Bytes of the digest that make the key, from 1 to 32
    #[arg(long, value_name = "N", default_value = "12", value_parser = parse_key_bytes)]
    pub(crate) key_bytes: KeyBytes,
    /// How the files are written out for the digest: reference or strict
    #[arg(long, value_name = "FORM", default_value = "reference", value_parser = parse_form)]
    pub(crate) form: Form,
    /// Leave out the index sidecars .sbn .sbx .qix .fix, which can be made anew
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Print JSON, one object a line: path, key, full digest, members
    #[arg(long)]
    pub(crate) json: bool,
    /// Shapefiles, zips and folders of them
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firstclaim explain event.json
  aws sqs receive-message --queue-url URL | firstclaim explain -

A dry run: nothing is claimed, recorded or run, and no object store is asked.")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArg,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Print JSON, one object a line for each event
    #[arg(long)]
    pub(crate) json: bool,
    /// An event file; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PipelineArg {
    /// The pipeline contract [default: pipeline.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) pipeline: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArg {
    /// Where claims are kept: `sqlite:PATH`, `postgres://HOST/DATABASE` or `dynamodb://TABLE` (if built with it), or
    /// `memory:` for this process alone
    #[arg(long, value_name = "URL", default_value = "sqlite:firstclaim.db")]
    pub(crate) store: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firstclaim run inbox/
  firstclaim run --store sqlite:/var/lib/claims.db --concurrency 8 events/*.json
  firstclaim run --json inbox/ | jq .
  firstclaim claims sweep | firstclaim run - inbox/

A FILE is an event as for `firstclaim id`, or one a line; a DIR is a folder of objects, each file in it one, named after the
folder (or NAME=DIR). Hidden files and folders, and the store's own files, are left alone. An event whose job is done is
skipped; one that somebody else holds is waited for; one that fails is tried up to three times. The last line is
`processed=N skipped=N held=N ignored=N failed=N rejected=N`. Any number of runs may share a store: they share the work.

An event of a folder's object names that folder, which must be among the DIRs if the job reads the object. Where the machine
lacks what a job needs (the folder, the program, room on the disk), no attempt is used; after three in a row the run ends.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArg,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Events handled side by side [default: one for each core]
    #[arg(long, value_name = "N", value_parser = parse_concurrency)]
    pub(crate) concurrency: Option<usize>,
    /// Print JSON: an object a line for each event, and a last one with the counts
    #[arg(long)]
    pub(crate) json: bool,
    /// Event files and folders of objects; `-` is standard input: an event, or one a line
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) sources: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimsArgs {
    #[command(subcommand)]
    pub(crate) command: ClaimsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClaimsCommand {
    /// List claims, oldest first: by default those that are not done
    List(ListArgs),
    /// Explain one claim: where it stands, why, and what happens next
    Show(ShowArgs),
    /// Give claims back, so that the next delivery of their event runs the job again
    Release(ReleaseArgs),
    /// Ask from within a job whether it still holds its claim: exit code 0 if it does
    Held(HeldArgs),
    /// Give claims back and send their events again, rebuilt from the records
    Redrive(RedriveArgs),
    /// Send again the events of claims that nobody is at and nobody redelivers
    Sweep(SweepArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firstclaim claims list
  firstclaim claims list --status done --limit 20 --json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Only claims with this status (may be given more than once): processing, done, failed, rejected, waiting
    #[arg(long, value_name = "STATUS", value_parser = parse_status)]
    pub(crate) status: Vec<Status>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) limit: u32,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  firstclaim claims show 81b6c7724e1446bf1ea7c9a89094b99e50e3f12b2c4f207ec5a39419036b4591")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The job ID
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  firstclaim claims release 81b6c7724e1446bf1ea7c9a89094b99e50e3f12b2c4f207ec5a39419036b4591

The claim becomes `failed`, its attempt is kept and the command is recorded; nothing is deleted. A worker that still runs
the job finds its lease lost and stops. The job runs again when its event is delivered again: `firstclaim claims redrive ID`
releases it and sends the event itself.")]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// The job IDs
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example, in a script that `firstclaim run --store \"$CLAIM_STORE\"` starts as a job:
  firstclaim claims held --store \"$CLAIM_STORE\" \"$FIRSTCLAIM_JOB_ID\" \"$FIRSTCLAIM_JOB_OWNER\" && mv new published

The claim is held if it is being processed by this owner, and its lease has not ended by this machine's clock. Then its end is
printed; otherwise why not, on standard error, and the exit code is 1 (2 for wrong usage), as it is if the store gives no
answer. A claim can be lost right after the answer, so nothing that must never happen twice may rest on it alone.")]
pub(crate) struct HeldArgs {
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// The job ID
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Who won the attempt, 32 lower-case hexadecimal characters: no two attempts have the same
    #[arg(value_name = "OWNER")]
    pub(crate) owner: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firstclaim claims redrive ID | firstclaim run -
  firstclaim claims redrive --status rejected --limit 100 | firstclaim run - inbox/    of a folder's files

Each claim becomes `failed`, which is recorded, and its event goes to standard output, one JSON object a line, as `run -` and
every handler read it. Pipe it on: if it is lost on the way, `claims sweep` sends it after the grace. A record that never was
a job (an unreadable or refused event) is closed once its event is settled. A claim that somebody holds is left alone.")]
pub(crate) struct RedriveArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArg,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// All claims with this status, oldest first: failed, rejected or waiting (may be given more than once)
    #[arg(long, value_name = "STATUS", value_parser = parse_redriven_status, conflicts_with = "ids")]
    pub(crate) status: Vec<Status>,
    /// With --status: at most this many
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) limit: u32,
    /// Also claims that are done: their jobs run again
    #[arg(long, requires = "ids")]
    pub(crate) done: bool,
    #[command(flatten)]
    pub(crate) grace: GraceArg,
    /// The job IDs
    #[arg(value_name = "ID", required_unless_present = "status")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firstclaim claims sweep | firstclaim run -
  firstclaim claims sweep | firstclaim run - inbox/    of a folder's files
  firstclaim claims sweep --dry-run

Sent are the events of claims whose holder went away, that failed, or that wait, once nothing has happened to them for the
grace. Each goes to standard output, one JSON object a line, as `run -` and every handler read it; the counts go to standard
error. Run it every few minutes, from as many machines as you like: a claim is sent by one of them, and by none of them again
until another grace has passed. Claims of another pipeline, or of another version of this one, are told and left alone.")]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArg,
    #[command(flatten)]
    pub(crate) store: StoreArg,
    #[command(flatten)]
    pub(crate) grace: GraceArg,
    /// Write nothing, and list what would be sent
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Tell what is not sent, and the counts, as JSON, one object a line on standard error; with --dry-run, the claims too
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GraceArg {
    /// How long a claim is left to its own source, and until it is sent once more, in seconds
    #[arg(long = "grace", value_name = "SECONDS", default_value_t = Resender::GRACE.as_secs())]
    pub(crate) seconds: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  firstclaim vectors --data tests/data/shapefiles tests/vectors/*.json")]
pub(crate) struct VectorsArgs {
    /// Where the shapefiles lie that vectors of upload keys name
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Files of vectors
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

fn parse_scheme(text: &str) -> Result<Scheme, String> {
    Scheme::from_name(text).ok_or_else(|| "expected strict, reference or ingest".to_owned())
}

fn parse_form(text: &str) -> Result<Form, String> {
    Form::from_name(text).ok_or_else(|| "expected reference or strict".to_owned())
}

fn parse_key_bytes(text: &str) -> Result<KeyBytes, String> {
    let bytes = text.parse().ok().and_then(KeyBytes::new);
    bytes.ok_or_else(|| "expected a whole number from 1 to 32".to_owned())
}

fn parse_status(text: &str) -> Result<Status, String> {
    Status::from_name(text)
        .ok_or_else(|| "expected processing, done, failed, rejected or waiting".to_owned())
}

fn parse_redriven_status(text: &str) -> Result<Status, String> {
    match Status::from_name(text) {
        Some(status @ (Status::Failed | Status::Rejected | Status::Waiting)) => Ok(status),
        _ => Err("expected failed, rejected or waiting".to_owned()),
    }
}

fn parse_concurrency(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("expected a whole number from 1 to 100000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
