//! From a source to a kernel in the cache, in steps that can be interrupted and resumed.

mod compile;
mod obtain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use landspeed_sys::disk;
use landspeed_units::Bytes;

use super::apt::{Apt, Package};
use super::cache::{Cache, lock_of};
use super::child::Job;
use super::config;
use super::edits;
use super::error::Error;
use super::hash::Hasher;
use super::lock::Lock;
use super::record::{Kernel, SCHEMA, Source};
use super::tools;
use super::version::Version;

/// Number of digits of the content hash in a kernel's id.
const ID_DIGITS: usize = 16;

/// Peak space of a build in addition to the package file and its contents, bytes: source 0.53 GB, objects 0.1 GB,
/// and a margin.
const SPACE_BYTES: u64 = 900_000_000;

/// A request to build a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Origin of the source.
    pub source: RequestedSource,
    /// Number of parallel compile jobs; `None` for one per CPU.
    pub jobs: Option<usize>,
    /// Whether to keep the source and the objects.
    pub keep_build: bool,
    /// Whether to build a kernel that is in the cache already.
    pub force: bool,
    /// Debian mirror; `None` for the host's own, or the default.
    pub mirror: Option<String>,
}

/// Origin of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedSource {
    /// Debian's archive, in a version; `None` for the newest.
    Packaged(Option<Version>),
    /// A tarball or a directory.
    Path(PathBuf),
}

impl Default for RequestedSource {
    fn default() -> Self {
        Self::Packaged(None)
    }
}

/// The steps of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reading Debian's package index.
    Index,
    /// Reading the source given by the user. Has no count.
    Read,
    /// Downloading. Counts bytes.
    Download,
    /// Unpacking or copying. Counts files.
    Unpack,
    /// Applying the edits to the copy.
    Edit,
    /// Writing and checking `.config`.
    Configure,
    /// Compiling. Counts objects.
    Compile,
    /// Linking `vmlinux`.
    Link,
}

/// Progress events of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step begins; the text is its subject.
    Begins(Step, String),
    /// Progress of a step. The total may grow.
    Progress {
        /// The current step.
        step: Step,
        /// Done so far, in the step's unit.
        done: u64,
        /// Expected total, in the step's unit.
        total: u64,
    },
    /// A note for the user.
    Note(String),
}

/// Result of a build.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildOutcome {
    /// The kernel, built or found in the cache.
    pub kernel: Kernel,
    /// Whether it was built now rather than found.
    pub fresh: bool,
}

/// A source, identified by its content.
struct Origin {
    source: Source,
    kernel: Version,
    material: Material,
}

enum Material {
    Package(Package),
    Tarball(PathBuf),
    Directory(PathBuf, Vec<PathBuf>),
}

struct Builder<'a> {
    cache: &'a Cache,
    request: &'a Request,
    interrupted: &'a AtomicBool,
    watch: &'a mut dyn FnMut(Event),
    compiler: String,
    /// The package index while it is needed, locked so that no other process uses or removes it.
    index: Option<(Lock, Apt<'a>)>,
}

/// Builds a kernel, or finds it in the cache. When `interrupted` is set, the work so far is kept, and the same
/// call continues from there.
pub fn build(
    cache: &Cache,
    request: &Request,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(Event),
) -> Result<BuildOutcome, Error> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Error::Architecture(std::env::consts::ARCH));
    }
    let root = cache.root();
    if root.as_os_str().to_string_lossy().contains([' ', ':', '\t', '\n', '"']) {
        return Err(Error::BadPath(root.to_owned()));
    }
    let from = match &request.source {
        RequestedSource::Packaged(_) => tools::From::Debian,
        RequestedSource::Path(path) if path.is_dir() => tools::From::Directory,
        RequestedSource::Path(path) => tools::From::Tarball(path),
    };
    let missing = tools::missing(&tools::needed(from), &std::env::var_os("PATH").unwrap_or_default());
    if !missing.is_empty() {
        return Err(Error::MissingTools(missing));
    }
    let mut builder = Builder { cache, request, interrupted, watch, compiler: String::new(), index: None };
    let result = builder.run();
    builder.release_index();
    result
}

impl Builder<'_> {
    fn run(&mut self) -> Result<BuildOutcome, Error> {
        self.compiler = self.compiler_version()?;
        let origin = match self.origin() {
            Err(error @ Error::Index { .. }) => return self.fall_back_to_cache(error),
            other => other?,
        };
        let key = self.key(&origin.source);
        let id = &key[..ID_DIGITS];
        if let Some(kernel) = self.kept(id) {
            return Ok(BuildOutcome { kernel, fresh: false });
        }
        let build = self.cache.build_directory(id);
        self.check_space(&origin, &build)?;
        fs::create_dir_all(&build).map_err(Error::io("create", &build))?;
        let lock = if let Some(lock) = Lock::try_take(&lock_of(&build))? {
            lock
        } else {
            // Waiting may take minutes: let other processes use the index.
            self.release_index();
            self.lock(&build)?.ok_or_else(|| Error::Interrupted(build.clone()))?
        };
        // The previous holder of the lock may have built it and removed the directory.
        if let Some(kernel) = self.kept(id) {
            if !self.request.keep_build {
                let _ = fs::remove_dir(&build);
            }
            lock.remove();
            return Ok(BuildOutcome { kernel, fresh: false });
        }
        fs::create_dir_all(&build).map_err(Error::io("create", &build))?;
        let kernel = match self.make(&origin, id, &build) {
            Err(error @ (Error::Edit(_) | Error::Config(_) | Error::Checksum { .. })) if !self.request.keep_build => {
                // Another attempt would fail in the same way, so the files are not kept.
                let _ = fs::remove_dir_all(&build);
                lock.remove();
                let _ = build.parent().map(fs::remove_dir);
                return Err(error);
            }
            other => other?,
        };
        if self.request.keep_build {
            self.note(format!("kept the build tree in {}", build.display()));
        } else {
            fs::remove_dir_all(&build).map_err(Error::io("remove", &build))?;
        }
        lock.remove();
        let _ = build.parent().map(fs::remove_dir);
        Ok(BuildOutcome { kernel, fresh: true })
    }

    fn make(&mut self, origin: &Origin, id: &str, build: &Path) -> Result<Kernel, Error> {
        let source = self.prepare(origin, build)?;
        self.release_index();
        self.compile(origin, id, build, &source)
    }

    /// Falls back to a kernel in the cache that meets the request: without the index, the newest source is unknown.
    fn fall_back_to_cache(&mut self, error: Error) -> Result<BuildOutcome, Error> {
        let RequestedSource::Packaged(wanted) = &self.request.source else { return Err(error) };
        let fits = |kernel: &Kernel| {
            matches!(kernel.source, Source::Debian { .. })
                && kernel
                    .version()
                    .is_some_and(|version| wanted.as_ref().is_none_or(|wanted| version.is_within(wanted)))
                && kernel.edits_hash == edits::hash()
                && kernel.config_hash == config_hash()
                && kernel.compiler == self.compiler
        };
        let there = self.cache.list()?.into_iter().find(fits).filter(|_| !self.request.force);
        let Some(kernel) = there else { return Err(error) };
        self.note(format!("{error}\nContinuing with the source on disk; a newer one may exist."));
        Ok(BuildOutcome { kernel, fresh: false })
    }

    /// Returns the hash of everything that determines the result of the build.
    fn key(&self, source: &Source) -> String {
        let mut hasher = Hasher::default();
        for part in [SCHEMA, source.hash(), config::FRAGMENT, &edits::hash(), &self.compiler] {
            hasher.field(part.as_bytes());
        }
        hasher.hex()
    }

    fn kept(&self, id: &str) -> Option<Kernel> {
        self.cache.exact(id).filter(|_| !self.request.force)
    }

    fn check_space(&self, origin: &Origin, build: &Path) -> Result<(), Error> {
        let root = self.cache.root();
        fs::create_dir_all(root).map_err(Error::io("create", root))?;
        if build.exists() {
            // The space still needed is unknown with a partial build: if the disk is full, the build will fail.
            return Ok(());
        }
        let needed = SPACE_BYTES
            + match &origin.material {
                // The package file and the tarball in it exist at the same time.
                Material::Package(package) => 2 * package.size_bytes,
                Material::Tarball(_) | Material::Directory(..) => 0,
            };
        let available = disk::available_bytes(root).map_err(Error::io("measure the free space of", root))?;
        if available < needed {
            let (needed, available) = (Bytes::new(needed), Bytes::new(available));
            return Err(Error::NoSpace { path: root.to_owned(), needed, available });
        }
        Ok(())
    }

    fn compiler_version(&self) -> Result<String, Error> {
        let mut command = Command::new("gcc");
        command.arg("--version");
        let said = self.job("asking the compiler its version", command, self.cache.root()).output()?;
        Ok(said.lines().next().unwrap_or_default().to_owned())
    }

    /// Waits for the lock of a directory.
    fn lock(&mut self, directory: &Path) -> Result<Option<Lock>, Error> {
        let watch = &mut *self.watch;
        Lock::take(&lock_of(directory), self.interrupted, |holder| {
            let who = holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            watch(Event::Note(format!("waiting for {who}, which is building the same kernel")));
        })
    }

    fn job<'j>(&'j self, what: &'j str, command: Command, place: &Path) -> Job<'j> {
        Job { what, command, interrupted: self.interrupted, log: None, place: place.to_owned() }
    }

    fn begin(&mut self, step: Step, on: String) {
        (self.watch)(Event::Begins(step, on));
    }

    fn note(&mut self, text: String) {
        (self.watch)(Event::Note(text));
    }
}

/// Returns the hash of the requested configuration.
fn config_hash() -> String {
    let mut hasher = Hasher::default();
    hasher.field(config::FRAGMENT.as_bytes());
    hasher.hex()
}
