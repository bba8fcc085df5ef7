//! Downloads of archives from registries. Nothing is used before its hash is right.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest as _, Sha256, Sha512};

use super::lock::Part;
use super::packages::Registry;

/// A registry that can be reached accepts a connection within a few round trips.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for the next bytes of a download.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Attempts of a download. Each begins anew.
const ATTEMPTS: u32 = 3;
/// An abbreviated description of a release has a few kilobytes.
const LARGEST_RELEASE: usize = 4 << 20;

/// The addresses of registries.
#[derive(Clone, Debug)]
pub struct Registries {
    pub npm: String,
    /// For pip.
    pub pypi_index: String,
    /// The host of PyPI's files.
    pub pypi_files: String,
    pub debian: String,
}

/// The public addresses, which npm, pip and Debian have as their own defaults. Options name mirrors.
impl Default for Registries {
    fn default() -> Self {
        Self {
            npm: "https://registry.npmjs.org".to_owned(),
            pypi_index: "https://pypi.org/simple".to_owned(),
            pypi_files: "https://files.pythonhosted.org".to_owned(),
            debian: "http://deb.debian.org/debian".to_owned(),
        }
    }
}

impl Registries {
    fn base(&self, registry: Registry) -> &str {
        let base = match registry {
            Registry::Npm => &self.npm,
            Registry::Pypi => &self.pypi_files,
            Registry::Debian => &self.debian,
        };
        base.trim_end_matches('/')
    }
}

/// Why an archive is not there.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
    #[error(
        "`{url}` cannot be downloaded: {message}\nhint: check the network, or name a mirror (`termsmith agent add --help`)"
    )]
    Download { url: String, message: String },
    #[error(
        "`{url}` does not exist\nhint: a mirror removes old versions; name one that keeps them, or another \
         version of the agent"
    )]
    Missing { url: String },
    #[error("`{url}` has the hash {found}, and the lock names {wanted}")]
    Hash { url: String, wanted: String, found: String },
    #[error("the lock names the hash `{0}`, which is neither sha512-BASE64 nor sha256:HEX")]
    UnknownHash(String),
    #[error("the answer of `{url}` is malformed: {message}")]
    Malformed { url: String, message: String },
    #[error("failed to {action} `{}`: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Downloads archives, and keeps them.
#[derive(Debug)]
pub struct Fetcher {
    client: reqwest::Client,
    registries: Registries,
    /// Folder of archives, each named by its hash.
    kept: PathBuf,
}

impl Fetcher {
    /// A fetcher that keeps archives in the folder `kept`.
    pub fn new(registries: Registries, kept: PathBuf) -> Result<Self, FetchError> {
        // Fails only if there is a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .user_agent(concat!("termsmith/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| FetchError::Client(error.to_string()))?;
        fs::create_dir_all(&kept).map_err(io("make the folder", &kept))?;
        Ok(Self { client, registries, kept })
    }

    /// The addresses that it uses.
    pub fn registries(&self) -> &Registries {
        &self.registries
    }

    /// The archive on this host, with the hash that the lock names.
    pub async fn archive(&self, part: &Part) -> Result<PathBuf, FetchError> {
        let wanted = Hash::parse(&part.hash)?;
        let path = self.kept.join(wanted.file_name());
        if path.is_file() {
            let bytes = fs::read(&path).map_err(io("read", &path))?;
            if wanted.of(&bytes) == part.hash {
                return Ok(path);
            }
        }
        let url = format!("{}/{}", self.registries.base(part.registry), part.path);
        tracing::info!(url, "downloading");
        let bytes = self.get(&url, usize::MAX).await?;
        let found = wanted.of(&bytes);
        if found != part.hash {
            return Err(FetchError::Hash { url, wanted: part.hash.clone(), found });
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.kept).map_err(io("write to", &self.kept))?;
        file.write_all(&bytes).map_err(io("write", &path))?;
        file.persist(&path).map_err(|error| error.error).map_err(io("write", &path))?;
        Ok(path)
    }

    /// The archive of a release on npm, with the hash that the registry names.
    pub async fn npm_release(&self, name: &str, version: &str) -> Result<Part, FetchError> {
        #[derive(Deserialize)]
        struct Release {
            dist: Dist,
        }
        #[derive(Deserialize)]
        struct Dist {
            tarball: String,
            integrity: String,
        }
        let url = format!("{}/{name}/{version}", self.registries.base(Registry::Npm));
        let malformed = |message: String| FetchError::Malformed { url: url.clone(), message };
        let bytes = self.get(&url, LARGEST_RELEASE).await?;
        let release: Release =
            serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        // A mirror may name the original's host.
        let path = release.dist.tarball.find(&format!("{name}/-/")).map(|at| &release.dist.tarball[at..]);
        let path = path.ok_or_else(|| malformed(format!("the tarball is `{}`", release.dist.tarball)))?;
        Ok(Part {
            registry: Registry::Npm,
            name: name.to_owned(),
            version: version.to_owned(),
            path: path.to_owned(),
            hash: release.dist.integrity,
        })
    }

    async fn get(&self, url: &str, most: usize) -> Result<Vec<u8>, FetchError> {
        let mut attempt = 1;
        loop {
            let error = match self.get_once(url, most).await {
                Ok(bytes) => return Ok(bytes),
                Err(error @ FetchError::Download { .. }) if attempt < ATTEMPTS => error,
                Err(error) => return Err(error),
            };
            tracing::warn!(url, attempt, %error, "downloading again");
            tokio::time::sleep(Duration::from_secs(attempt.into())).await;
            attempt += 1;
        }
    }

    async fn get_once(&self, url: &str, most: usize) -> Result<Vec<u8>, FetchError> {
        let failed = |error: reqwest::Error| FetchError::Download {
            url: url.to_owned(),
            message: with_causes(&error.without_url()),
        };
        let mut response = self.client.get(url).send().await.map_err(failed)?;
        match response.status().as_u16() {
            200 => {}
            404 | 410 => return Err(FetchError::Missing { url: url.to_owned() }),
            status => {
                let message = format!("HTTP status {status}");
                return Err(FetchError::Download { url: url.to_owned(), message });
            }
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                let message = format!("more than {most} bytes");
                return Err(FetchError::Malformed { url: url.to_owned(), message });
            }
        }
        Ok(bytes)
    }
}

/// A hash function, and the wanted value as a file's name.
enum Hash {
    Sha512(String),
    Sha256(String),
}

impl Hash {
    fn parse(text: &str) -> Result<Self, FetchError> {
        let unknown = || FetchError::UnknownHash(text.to_owned());
        if let Some(value) = text.strip_prefix("sha512-") {
            let bytes = STANDARD.decode(value).map_err(|_| unknown())?;
            return Ok(Self::Sha512(hex(&bytes)));
        }
        let value = text.strip_prefix("sha256:").ok_or_else(unknown)?;
        let is_hex = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { Ok(Self::Sha256(value.to_owned())) } else { Err(unknown()) }
    }

    fn file_name(&self) -> &str {
        let (Self::Sha512(value) | Self::Sha256(value)) = self;
        // Two archives with equal 128 hexadecimal digits do not occur, and half of them suffice.
        value.get(..64).unwrap_or(value)
    }

    /// The hash of `bytes`, written as the wanted one.
    fn of(&self, bytes: &[u8]) -> String {
        match self {
            Self::Sha512(_) => format!("sha512-{}", STANDARD.encode(Sha512::digest(bytes))),
            Self::Sha256(_) => format!("sha256:{}", hex(&Sha256::digest(bytes))),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> FetchError + 'a {
    move |source| FetchError::Io { action, path: path.to_owned(), source }
}

fn with_causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_computed_as_they_are_written() {
        let check = |text: &str, bytes: &str, expect: Option<bool>| {
            let same = Hash::parse(text).ok().map(|hash| hash.of(bytes.as_bytes()) == text);
            assert_eq!(same, expect, "{text}");
        };
        let sha256 = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let sha512 =
            "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==";
        check(sha256, "abc", Some(true));
        check(sha256, "abd", Some(false));
        check(sha512, "abc", Some(true));
        check("sha1-abc", "abc", None);
        check("sha256:xyz", "abc", None);
        check("sha512-***", "abc", None);
    }
}
