//! A command in a process group of its own: its output read with a bound, the whole group killed at its end.

use std::{
    collections::VecDeque,
    io,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    signal::unix::{self, SignalKind},
};
use tokio_util::sync::CancellationToken;

/// How long output is still read once the command has ended. Only a process that left the group (`setsid`) can hold a
/// pipe open for so long: everything else is dead, and what it wrote is read in no time.
const GRACE: Duration = Duration::from_secs(1);

/// A command that ran to its end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Tail,
    pub(crate) stderr: Tail,
}

/// Why a command did not run to its end.
#[derive(Debug)]
pub(crate) enum ProcessError {
    /// It was never started.
    Start(io::Error),
    /// It was started, could not be watched, and was killed.
    Watch(io::Error),
}

/// Runs a command to its end, in a process group of its own, with nothing to read.
///
/// When the command has ended, whatever it left in its group is killed. When this future is dropped, the whole group has
/// been sent SIGKILL by the time the drop returns. A process that leaves the group (`setsid`) is out of reach.
///
/// Once `stopping` is cancelled, the group is sent SIGTERM, and this waits for the command and for all that hold its output:
/// whoever stops it drops this future when it has waited for long enough.
pub(crate) async fn run(
    mut command: Command,
    stopping: &CancellationToken,
) -> Result<Ended, ProcessError> {
    use ProcessError::{Start, Watch};
    // Listening begins before the command does, so that its end cannot be missed.
    let mut ends = unix::signal(SignalKind::child()).map_err(Start)?;
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(Start)?;
    // Declared after the child, so dropped before it: the group's number is taken until its leader has been reaped.
    let group = Group::led_by(&child).map_err(Watch)?;
    let (mut stdout, mut stderr) = (Tail::default(), Tail::default());
    {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let mut reading = pin!(async {
            tokio::try_join!(keep(out, &mut stdout), keep(err, &mut stderr)).map(drop)
        });
        let leader = group.0;
        let mut ending = pin!(async {
            let mut ended = pin!(ended(leader, &mut ends));
            tokio::select! {
                ended = &mut ended => return ended,
                () = stopping.cancelled() => signal(leader, Signal::TERM),
            }
            ended.await
        });
        tokio::select! {
            read = &mut reading => {
                read.map_err(Watch)?;
                ending.await.map_err(Watch)?;
                drop(group);
            }
            ended = &mut ending => {
                ended.map_err(Watch)?;
                if stopping.is_cancelled() {
                    // A shell dies of the signal at once, while what it runs is still clearing up.
                    reading.await.map_err(Watch)?;
                    drop(group);
                } else {
                    drop(group);
                    match tokio::time::timeout(GRACE, reading).await {
                        Ok(read) => read.map_err(Watch)?,
                        Err(_) => tracing::warn!(
                            pid = leader.as_raw_nonzero().get(),
                            "a process that left the command's process group still holds its output open"
                        ),
                    }
                }
            }
        }
    }
    let status = child.wait().await.map_err(Watch)?;
    Ok(Ended {
        status,
        stdout,
        stderr,
    })
}

/// A process group whose leader has not been reaped. Killed when dropped.
#[derive(Debug)]
struct Group(Pid);

impl Group {
    fn led_by(child: &Child) -> io::Result<Self> {
        child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .map(Self)
            .ok_or_else(|| io::Error::other("the command has no process ID"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        signal(self.0, Signal::KILL);
    }
}

/// Sends a signal to every process of a group.
fn signal(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // Some systems refuse (EPERM) where only dead members are left.
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
        Err(error) => tracing::warn!(
            pid = group.as_raw_nonzero().get(),
            %error,
            "the command's process group cannot be sent a signal"
        ),
    }
}

/// Returns once the process has ended, and leaves it unreaped: until then its number cannot name another group.
async fn ended(pid: Pid, ends: &mut unix::Signal) -> io::Result<()> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(_)) => return Ok(()),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(None) => {}
        }
        if ends.recv().await.is_none() {
            return Err(io::Error::other(
                "the runtime stopped listening for signals",
            ));
        }
    }
}

/// Reads to the end, keeping the last bytes.
async fn keep(from: Option<impl AsyncRead + Unpin>, tail: &mut Tail) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut chunk = vec![0; 16 * 1024];
    loop {
        match from.read(&mut chunk).await? {
            0 => return Ok(()),
            read => tail.push(&chunk[..read]),
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl Tail {
    /// How much is kept, in bytes.
    pub(crate) const KEPT: usize = 64 * 1024;

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend(chunk);
        let excess = self.bytes.len().saturating_sub(Self::KEPT);
        self.bytes.drain(..excess);
        self.cut |= excess > 0;
    }

    /// Whether the stream's beginning was let go.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// What was kept, as text that is safe in records and on terminals: bytes that are not UTF-8 and control characters
    /// are U+FFFD, but for tabs and line ends; a carriage return is a line end.
    pub(crate) fn text(&self) -> String {
        // A character whose beginning was let go is left out.
        let torn = |&&byte: &&u8| self.cut && byte & 0b1100_0000 == 0b1000_0000;
        let torn = self.bytes.iter().take(3).take_while(torn).count();
        let bytes: Vec<u8> = self.bytes.iter().skip(torn).copied().collect();
        String::from_utf8_lossy(&bytes)
            .replace("\r\n", "\n")
            .chars()
            .map(|c| match c {
                '\r' => '\n',
                '\n' | '\t' => c,
                c if c.is_control() => char::REPLACEMENT_CHARACTER,
                c => c,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Read as _},
        os::unix::process::ExitStatusExt as _,
        path::{Path, PathBuf},
    };

    use proptest::prelude::*;
    use tokio::sync::oneshot;

    use super::*;

    /// Far more than any of these takes; only a test that fails waits so long.
    const LONG: Duration = Duration::from_secs(120);

    fn shell(script: &str, argument: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(argument);
        command
    }

    async fn shell_ends(script: &str) -> Ended {
        tokio::time::timeout(LONG, never_stopped(shell(script, Path::new(""))))
            .await
            .unwrap()
            .unwrap()
    }

    async fn never_stopped(command: Command) -> Result<Ended, ProcessError> {
        run(command, &CancellationToken::new()).await
    }

    /// A named pipe that says when somebody opened it, and when the last of those who hold it is dead.
    struct Life {
        _folder: tempfile::TempDir,
        path: PathBuf,
        begun: oneshot::Receiver<()>,
        over: oneshot::Receiver<String>,
    }

    fn life() -> Life {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("life");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let (begin, begun) = oneshot::channel();
        let (end, over) = oneshot::channel();
        let fifo = path.clone();
        // A thread of its own: a test that fails does not wait for it.
        std::thread::spawn(move || {
            let mut reader = BufReader::new(std::fs::File::open(fifo).unwrap());
            let mut text = String::new();
            reader.read_line(&mut text).unwrap();
            let _ = begin.send(());
            reader.read_to_string(&mut text).unwrap();
            let _ = end.send(text);
        });
        Life {
            _folder: folder,
            path,
            begun,
            over,
        }
    }

    #[tokio::test]
    async fn dropping_the_run_kills_the_child_and_the_grandchild() {
        let life = life();
        let running = never_stopped(shell(
            "exec 3>\"$1\"; sleep 1000 & echo up >&3; wait; echo late >&3",
            &life.path,
        ));
        tokio::select! {
            ended = running => panic!("it ended: {ended:?}"),
            begun = life.begun => begun.unwrap(),
        }
        let over = tokio::time::timeout(LONG, life.over).await;
        assert_eq!(over.unwrap().unwrap(), "up\n");
    }

    #[tokio::test]
    async fn a_command_that_is_told_to_stop_may_clear_up_and_so_may_what_a_shell_runs() {
        let clears_up = "trap 'echo cleared >&3; echo told; exit 3' TERM; echo up >&3; while :; do sleep 0.05; done";
        let by_a_shell = format!("exec 3>\"$1\"; ({clears_up}); echo late >&3");
        for script in [format!("exec 3>\"$1\"; {clears_up}"), by_a_shell] {
            let life = life();
            let stopping = CancellationToken::new();
            let mut running = pin!(run(shell(&script, &life.path), &stopping));
            tokio::select! {
                ended = &mut running => panic!("it ended: {ended:?}"),
                begun = life.begun => begun.unwrap(),
            }
            stopping.cancel();
            let ended = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
            assert!(!ended.status.success());
            assert_eq!(ended.stdout.text(), "told\n");
            let over = tokio::time::timeout(LONG, life.over).await;
            assert_eq!(over.unwrap().unwrap(), "up\ncleared\n");
        }
    }

    #[tokio::test]
    async fn a_command_that_does_not_stop_is_killed_when_its_run_is_dropped() {
        let life = life();
        let stopping = CancellationToken::new();
        let script =
            "exec 3>\"$1\"; trap 'echo told >&3' TERM; echo up >&3; while :; do sleep 0.05; done";
        {
            let mut running = pin!(run(shell(script, &life.path), &stopping));
            tokio::select! {
                ended = &mut running => panic!("it ended: {ended:?}"),
                begun = life.begun => begun.unwrap(),
            }
            stopping.cancel();
            let waited = tokio::time::timeout(Duration::from_millis(500), running).await;
            assert!(waited.is_err(), "{waited:?}");
        }
        let over = tokio::time::timeout(LONG, life.over).await;
        assert_eq!(over.unwrap().unwrap(), "up\ntold\n");
    }

    #[tokio::test]
    async fn what_the_command_leaves_in_its_group_is_killed() {
        let life = life();
        let running = never_stopped(shell("exec 3>\"$1\"; sleep 1000 & echo up >&3", &life.path));
        let ended = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
        assert!(ended.status.success());
        let over = tokio::time::timeout(LONG, life.over).await;
        assert_eq!(over.unwrap().unwrap(), "up\n");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_process_outside_of_the_group_that_holds_the_output_open_does_not_hang_the_job() {
        let folder = tempfile::tempdir().unwrap();
        let script = r#"
            setsid sh -c 'echo $$ >"$1"; exec sleep 1000' sh "$1" &
            until [ -s "$1" ]; do sleep 0.01; done
            cat "$1"
        "#;
        let running = never_stopped(shell(script, &folder.path().join("pid")));
        let ended = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
        assert!(ended.status.success());
        let escaped = Pid::from_raw(ended.stdout.text().trim().parse().unwrap()).unwrap();
        assert_eq!(rustix::process::getpgid(Some(escaped)), Ok(escaped));
        rustix::process::kill_process(escaped, Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn fifty_megabytes_of_output_leave_the_last_64_kib() {
        let ended = shell_ends("head -c 50000000 /dev/zero | tr '\\0' x; echo end").await;
        assert!(ended.status.success());
        assert!(ended.stdout.is_cut());
        assert_eq!(ended.stdout.bytes.len(), Tail::KEPT);
        assert!(
            ended.stdout.bytes.capacity() <= 4 * Tail::KEPT,
            "{}",
            ended.stdout.bytes.capacity()
        );
        assert!(ended.stdout.text().ends_with("xxend\n"));
        assert_eq!(ended.stderr.text(), "");
    }

    #[tokio::test]
    async fn both_streams_are_read_at_once() {
        let fill = "head -c 1000000 /dev/zero | tr '\\0'";
        let script = format!("{fill} e >&2; {fill} o; echo err >&2; echo out");
        let ended = shell_ends(&script).await;
        assert!(ended.stdout.text().ends_with("oout\n"));
        assert!(ended.stderr.text().ends_with("eerr\n"));
    }

    #[tokio::test]
    async fn a_command_that_closes_its_output_is_waited_for() {
        let ended = shell_ends("exec >&- 2>&-; sleep 0.2; exit 7").await;
        assert_eq!(ended.status.code(), Some(7));
    }

    #[tokio::test]
    async fn there_is_nothing_to_read_and_a_signal_is_told() {
        let ended = shell_ends("cat; kill -TERM $$").await;
        assert_eq!(ended.status.signal(), Some(15));
    }

    #[tokio::test]
    async fn many_at_once_all_end() {
        let runs: Vec<_> = (0..20)
            .map(|code| tokio::spawn(async move { shell_ends(&format!("exit {code}")).await }))
            .collect();
        for (code, run) in (0..20).zip(runs) {
            assert_eq!(run.await.unwrap().status.code(), Some(code));
        }
    }

    #[test]
    fn text_has_no_control_characters_and_no_torn_character() {
        let mut tail = Tail::default();
        tail.push(b"a\x1b[31m\0\r\nb\rc\td\xff\x7f\n");
        assert_eq!(
            tail.text(),
            "a\u{fffd}[31m\u{fffd}\nb\nc\td\u{fffd}\u{fffd}\n"
        );

        let mut tail = Tail::default();
        tail.push("€".as_bytes());
        tail.push(&vec![b'x'; Tail::KEPT - 1]);
        assert!(tail.is_cut());
        assert_eq!(tail.text(), "x".repeat(Tail::KEPT - 1));
    }

    proptest! {
        #[test]
        fn a_tail_is_the_end_of_what_was_pushed(
            runs in prop::collection::vec((any::<u8>(), 0usize..80_000), 0..6)
        ) {
            let chunks: Vec<_> = runs.iter().map(|&(byte, length)| vec![byte; length]).collect();
            let mut tail = Tail::default();
            for chunk in &chunks {
                tail.push(chunk);
            }
            let all = chunks.concat();
            let kept = &all[all.len().saturating_sub(Tail::KEPT)..];
            prop_assert!(tail.bytes.iter().eq(kept));
            prop_assert_eq!(tail.is_cut(), kept.len() < all.len());
        }
    }
}
