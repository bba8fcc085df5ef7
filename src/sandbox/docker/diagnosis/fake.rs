//! A host for tests: a folder as its file system, and sockets that answer HTTP requests from a
//! table.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use tempfile::TempDir;

use crate::sandbox::diagnosis::Host;

/// Status and body of an answer.
pub(super) type Reply = (u16, &'static str);

pub(super) struct Machine {
    dir: TempDir,
    env: BTreeMap<String, String>,
    uid: u32,
}

impl Machine {
    /// An empty machine, on which the user is root.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("run")).unwrap();
        fs::create_dir_all(dir.path().join("var")).unwrap();
        std::os::unix::fs::symlink("../run", dir.path().join("var/run")).unwrap();
        Self { dir, env: BTreeMap::new(), uid: 0 }
    }

    pub(super) fn host(&self) -> Host {
        Host { root: self.dir.path().to_owned(), env: self.env.clone(), uid: self.uid }
    }

    pub(super) fn file(self, path: &str, text: &str) -> Self {
        let file = self.host().path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    pub(super) fn process(self, pid: u32, name: &str, state: char) -> Self {
        self.file(&format!("/proc/{pid}/stat"), &format!("{pid} ({name}) {state} 1 1 1 0 -1\n"))
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn uid(self, uid: u32) -> Self {
        Self { uid, ..self }
    }

    /// An engine at this socket, with replies by prefix of the request line. Other requests get
    /// status 404.
    pub(super) fn engine(self, socket: &str, routes: &[(&'static str, Reply)]) -> Self {
        let path = self.host().path(socket);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(path).unwrap();
        let routes = routes.to_vec();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(&stream, &routes);
            }
        });
        self
    }
}

fn serve(stream: &UnixStream, routes: &[(&str, Reply)]) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let line = head.lines().next().unwrap_or_default();
    let route = routes.iter().find(|(prefix, _)| line.starts_with(prefix));
    let (code, text) = route.map_or((404, r#"{"message":"no such thing"}"#), |(_, reply)| *reply);
    write!(&mut &*stream, "HTTP/1.1 {code} X\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// Runs a test's future to its end.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
