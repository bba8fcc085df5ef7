//! A test's machine: a folder as its file system, a table of programs, and sockets that answer HTTP requests from a table.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::System;
use super::system::{Exit, Invocation};

/// What a program prints and ends with, or what the engine replies.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    code: u16,
    text: String,
}

impl Reply {
    pub(super) fn text(code: u16, text: &str) -> Self {
        Self { code, text: text.to_owned() }
    }
}

/// Request lines and bodies.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Runs when a program is run.
type Effect = Rc<dyn Fn(&Machine)>;

#[derive(Clone)]
pub(super) struct Machine(Rc<Inner>);

struct Inner {
    dir: TempDir,
    env: RefCell<BTreeMap<String, String>>,
    uid: Cell<u32>,
    start_timeout: Cell<Duration>,
    commands: RefCell<Vec<String>>,
    programs: RefCell<Vec<(String, Reply, Effect)>>,
    requests: Requests,
}

impl Machine {
    /// An empty machine, on which the user is root and every program succeeds without output.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("run")).unwrap();
        fs::create_dir_all(dir.path().join("var")).unwrap();
        std::os::unix::fs::symlink("../run", dir.path().join("var/run")).unwrap();
        Self(Rc::new(Inner {
            dir,
            env: RefCell::default(),
            uid: Cell::new(0),
            start_timeout: Cell::new(Duration::ZERO),
            commands: RefCell::default(),
            programs: RefCell::default(),
            requests: Arc::default(),
        }))
    }

    pub(super) fn file(self, path: &str, text: &str) -> Self {
        let file = self.0.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    pub(super) fn folder(self, path: &str) -> Self {
        fs::create_dir_all(self.0.dir.path().join(path.trim_start_matches('/'))).unwrap();
        self
    }

    pub(super) fn process(self, pid: u32, comm: &str, state: char) -> Self {
        self.file(&format!("/proc/{pid}/stat"), &format!("{pid} ({comm}) {state} 1 1 1 0 -1\n"))
    }

    pub(super) fn listening(self, sockets: &[&str]) -> Self {
        let mut table = "Num       RefCount Protocol Flags    Type St Inode Path\n".to_owned();
        for socket in sockets {
            table += &format!("0000000000000001: 00000002 00000000 00010000 0001 01  4042 {socket}\n");
            // An accepted connection has the same name as its listener, but is none.
            table += "0000000000000002: 00000003 00000000 00000000 0001 03  4043 /run/docker.sock\n";
        }
        self.file("/proc/net/unix", &table)
    }

    pub(super) fn env(self, name: &str, value: &str) -> Self {
        self.0.env.borrow_mut().insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn uid(self, uid: u32) -> Self {
        self.0.uid.set(uid);
        self
    }

    pub(super) fn start_timeout(self, timeout: Duration) -> Self {
        self.0.start_timeout.set(timeout);
        self
    }

    /// What a program does whose command line has this prefix. It prints to stdout if the code is 0, else to stderr.
    pub(super) fn when_run(&self, prefix: &str, reply: Reply, effect: impl Fn(&Self) + 'static) {
        self.0.programs.borrow_mut().push((prefix.to_owned(), reply, Rc::new(effect)));
    }

    /// Starts an engine on this socket, with replies by prefix of the request line; other requests get status 404.
    pub(super) fn engine(&self, socket: &str, routes: &[(&str, Reply)]) {
        let path = self.0.dir.path().join(socket.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(path).unwrap();
        let routes: Vec<(String, Reply)> =
            routes.iter().map(|(line, reply)| ((*line).to_owned(), reply.clone())).collect();
        let requests = Arc::clone(&self.0.requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(&stream, &routes, &requests);
            }
        });
    }

    pub(super) fn system(&self) -> System {
        let machine = self.clone();
        System {
            root: self.0.dir.path().to_owned(),
            env: self.0.env.borrow().clone(),
            uid: self.0.uid.get(),
            runner: Box::new(move |invocation, stdout, _| machine.run(invocation, stdout)),
            start_timeout: self.0.start_timeout.get(),
            lists_are_fresh: Cell::new(false),
        }
    }

    /// The command lines that were run.
    pub(super) fn commands(&self) -> Vec<String> {
        self.0.commands.borrow().clone()
    }

    /// The POST requests that engines got, with their bodies.
    pub(super) fn posts(&self) -> Vec<(String, Vec<u8>)> {
        let requests = self.0.requests.lock().unwrap();
        requests.iter().filter(|(line, _)| line.starts_with("POST ")).cloned().collect()
    }

    fn run(&self, invocation: &Invocation, stdout: &mut dyn Write) -> io::Result<Exit> {
        let command = invocation.to_string();
        self.0.commands.borrow_mut().push(command.clone());
        let programs = self.0.programs.borrow();
        let Some((_, reply, effect)) =
            programs.iter().find(|(prefix, ..)| command.starts_with(prefix.as_str()))
        else {
            return Ok(Exit { code: Some(0), stderr: String::new() });
        };
        effect(self);
        if reply.code == 0 {
            stdout.write_all(reply.text.as_bytes())?;
        }
        let stderr = if reply.code == 0 { String::new() } else { reply.text.clone() };
        Ok(Exit { code: Some(reply.code.into()), stderr })
    }
}

fn serve(stream: &UnixStream, routes: &[(String, Reply)], requests: &Requests) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let mut body = Vec::new();
    let mut whole = true;
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        whole = false;
        let mut size = String::new();
        while reader.read_line(&mut size)? > 0 {
            let length = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; length + 2];
            reader.read_exact(&mut chunk)?;
            if length == 0 {
                whole = true;
                break;
            }
            body.extend_from_slice(&chunk[..length]);
            size.clear();
        }
    }
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let reply = if whole {
        routes.iter().find(|(prefix, _)| line.starts_with(prefix.as_str())).map(|(_, reply)| reply.clone())
    } else {
        Some(Reply::text(500, r#"{"message":"unexpected EOF"}"#))
    };
    let reply = reply.unwrap_or_else(|| Reply::text(404, r#"{"message":"no such thing"}"#));
    requests.lock().unwrap().push((line, body));
    let (code, text) = (reply.code, reply.text);
    write!(&mut &*stream, "HTTP/1.1 {code} X\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}
