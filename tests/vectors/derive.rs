//! Answers requests like `reference.py` and `strict.py`: one JSON request a line in, its job ID or `error: …` a line out.

use std::{
    error::Error,
    io::{BufRead as _, BufWriter, Write as _},
};

use identity_core::identity::vectors::Request;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        match answer(&line?) {
            Ok(id) => writeln!(out, "{id}")?,
            Err(error) => writeln!(out, "error: {}", error.replace(['\n', '\r'], " "))?,
        }
    }
    out.flush()?;
    Ok(())
}

fn answer(line: &str) -> Result<String, String> {
    let request = Request::parse(line).map_err(|error| error.to_string())?;
    let scheme = request
        .scheme()
        .map_err(|error| error.to_string())?
        .ok_or("the request has no scheme")?;
    let answer = request.answer(scheme).map_err(|error| error.to_string())?;
    answer.job_id.map(|id| id.to_hex())
}
