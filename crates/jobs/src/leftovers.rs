//! Folders of runs that a process left behind because it was killed.

use std::{ffi::OsStr, fs, path::Path, process};

const PREFIX: &str = "firstclaim-";

/// What the names of this process's folders begin with: whose they are can be told from them.
pub(crate) fn prefix() -> String {
    format!("{PREFIX}{}-", process::id())
}

/// Removes from a temporary folder what processes that are gone left there, before this one makes its own. For a
/// folder that only processes of this machine use.
///
/// Lambda starts a function that was killed (out of memory, out of time) anew in the same environment and keeps its `/tmp`:
/// what was left there would be missing for ever.
/// <https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>
pub fn remove(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return; // nothing there
    };
    for entry in entries.flatten() {
        let Some(owner) = owner(&entry.file_name()) else {
            continue;
        };
        // The number of a killed process may by now be that of this one, which has none yet.
        let is_alive =
            owner != process::id() && Path::new("/proc").join(owner.to_string()).exists();
        if is_alive {
            continue;
        }
        let path = entry.path();
        match fs::remove_dir_all(&path) {
            Ok(()) => {
                tracing::info!(folder = %path.display(), "removed what a killed process left")
            }
            Err(error) => {
                tracing::warn!(folder = %path.display(), %error, "what a killed process left stays");
            }
        }
    }
}

/// The process whose folder this is.
fn owner(name: &OsStr) -> Option<u32> {
    let (owner, _) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    owner.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_killed_processes_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number: Linux counts to 4,194,304 at most.
        let gone = "firstclaim-4194305-abc";
        let own = format!("{}abc", prefix());
        let kept = [
            "firstclaim-1-abc",
            "firstclaim-dist",
            "firstclaim-x-abc",
            "other-4194305-a",
        ];
        for name in [gone, &own].iter().chain(&kept) {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("copy"), "bytes").unwrap();
        }
        remove(folder.path());
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, kept);
        remove(&folder.path().join("missing"));
    }
}
