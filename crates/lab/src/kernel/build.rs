//! From a source to a kernel in the cache, in steps that can be interrupted and resumed. A patched kernel begins with a copy of
//! the stock kernel's build tree if that is kept, so that make compiles only what the patch changes.

mod compile;
mod obtain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use landspeed_sys::disk;
use landspeed_units::Bytes;

use super::apt::{Apt, Package};
use super::cache::{COMPLETE, Cache, lock_of};
use super::child::Job;
use super::config;
use super::edits;
use super::error::Error;
use super::hash::Hasher;
use super::lock::Lock;
use super::patch::{self, Patch};
use super::record::{Kernel, SCHEMA, Source};
use super::tools;
use super::version::Version;

/// Number of digits of the content hash in a kernel's id.
const ID_DIGITS: usize = 16;

/// Peak space of a build in addition to the package file and its contents, bytes: source 0.53 GB, objects 0.1 GB,
/// and a margin.
const SPACE_BYTES: u64 = 900_000_000;

/// Note before a patched kernel that is compiled from scratch.
const NO_TREE: &str = "no build tree of the kernel without patches is kept, so everything is compiled; `landspeed lab kernel build \
                       --keep-build --force` keeps it, and patched kernels then compile only what a patch changes";

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
    /// Patch files, which are applied in this order after the edits; none for the stock kernel.
    pub patches: Vec<PathBuf>,
    /// Name of the patched kernel; `None` for the names of the patch files.
    pub name: Option<String>,
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
    /// The kept build tree of the stock kernel.
    Tree(PathBuf),
}

struct Builder<'a> {
    cache: &'a Cache,
    request: &'a Request,
    interrupted: &'a AtomicBool,
    watch: &'a mut dyn FnMut(Event),
    compiler: String,
    patches: Vec<Patch>,
    /// Name of the patched kernel.
    name: Option<String>,
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
    let patches = request.patches.iter().map(|path| Patch::read(path)).collect::<Result<Vec<_>, _>>()?;
    let name = patch::name(request.name.as_deref(), &patches)?;
    let mut needed = tools::needed(from);
    if !patches.is_empty() {
        needed.extend(tools::PATCH_TOOLS);
    }
    let missing = tools::missing(&needed, &std::env::var_os("PATH").unwrap_or_default());
    if !missing.is_empty() {
        return Err(Error::MissingTools(missing));
    }
    let mut builder =
        Builder { cache, request, interrupted, watch, compiler: String::new(), patches, name, index: None };
    let result = builder.run();
    builder.release_index();
    result
}

impl Builder<'_> {
    fn run(&mut self) -> Result<BuildOutcome, Error> {
        self.compiler = self.compiler_version()?;
        let mut origin = match self.kept_origin()? {
            Some(origin) => origin,
            None => match self.origin() {
                Err(error @ Error::Index { .. }) => return self.fall_back_to_cache(error),
                other => other?,
            },
        };
        let key = self.key(&origin.source);
        let stock = &key[..ID_DIGITS];
        let id = &patch::id(stock, &self.patches);
        if let Some(kernel) = self.kept(id)? {
            return Ok(BuildOutcome { kernel, fresh: false });
        }
        self.cache.check_name(self.name.as_deref(), id)?;
        if !self.patches.is_empty() {
            match self.kept_tree(stock) {
                Some(tree) => origin.material = Material::Tree(tree),
                None => self.note(NO_TREE.to_owned()),
            }
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
        if let Some(kernel) = self.kept(id)? {
            if !self.request.keep_build {
                let _ = fs::remove_dir(&build);
            }
            lock.remove();
            return Ok(BuildOutcome { kernel, fresh: false });
        }
        fs::create_dir_all(&build).map_err(Error::io("create", &build))?;
        let kernel = match self.make(&origin, id, &build) {
            Err(error @ (Error::Edit(_) | Error::Patch(_) | Error::Config(_) | Error::Checksum { .. }))
                if !self.request.keep_build =>
            {
                // Another attempt would fail in the same way, so the files are not kept.
                let _ = fs::remove_dir_all(&build);
                lock.remove();
                let _ = build.parent().map(fs::remove_dir);
                return Err(error);
            }
            other => other?,
        };
        if self.request.keep_build {
            let stamp = build.join(COMPLETE);
            fs::write(&stamp, "").map_err(Error::io("write", &stamp))?;
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
        let stock = self.stock_kernels()?.into_iter().next();
        let Some(stock) = stock else { return Err(error) };
        let Some(kernel) = self.kept(&patch::id(&stock.id, &self.patches))? else { return Err(error) };
        self.note(format!("{error}\nContinuing with the source on disk; a newer one may exist."));
        Ok(BuildOutcome { kernel, fresh: false })
    }

    /// Returns the stock kernels in the cache that meet a request for a packaged source, newest first.
    fn stock_kernels(&self) -> Result<Vec<Kernel>, Error> {
        let RequestedSource::Packaged(wanted) = &self.request.source else { return Ok(Vec::new()) };
        let fits = |kernel: &Kernel| {
            matches!(kernel.source, Source::Debian { .. })
                && kernel.is_stock()
                && kernel
                    .version()
                    .is_some_and(|version| wanted.as_ref().is_none_or(|wanted| version.is_within(wanted)))
                && kernel.edits_hash == edits::hash()
                && kernel.config_hash == config_hash()
                && kernel.compiler == self.compiler
        };
        Ok(self.cache.list()?.into_iter().filter(fits).collect())
    }

    /// Returns the source of the newest stock kernel whose build tree is kept: patching it needs neither the package index
    /// nor a download.
    fn kept_origin(&self) -> Result<Option<Origin>, Error> {
        if self.patches.is_empty() {
            return Ok(None);
        }
        Ok(self.stock_kernels()?.into_iter().find_map(|kernel| {
            let material = Material::Tree(self.kept_tree(&kernel.id)?);
            Some(Origin { kernel: kernel.version()?, source: kernel.source, material })
        }))
    }

    /// Returns the complete build tree of a stock kernel, if it was kept.
    fn kept_tree(&self, stock: &str) -> Option<PathBuf> {
        Some(self.cache.build_directory(stock)).filter(|tree| tree.join(COMPLETE).exists())
    }

    /// Returns the hash of everything that determines the result of the build, except the patches.
    fn key(&self, source: &Source) -> String {
        let mut hasher = Hasher::default();
        for part in [SCHEMA, source.hash(), config::FRAGMENT, &edits::hash(), &self.compiler] {
            hasher.field(part.as_bytes());
        }
        hasher.hex()
    }

    /// Returns the kernel if it is built, under the requested name.
    fn kept(&self, id: &str) -> Result<Option<Kernel>, Error> {
        let Some(kernel) = self.cache.exact(id).filter(|_| !self.request.force) else { return Ok(None) };
        if self.request.name.is_some() && kernel.name != self.name {
            return self.cache.rename(kernel, self.name.clone()).map(Some);
        }
        Ok(Some(kernel))
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
                Material::Tarball(_) | Material::Directory(..) | Material::Tree(_) => 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a source that is complete up to the patches; `None` if a tool of a build is not installed.
    fn build_patched(cache: &Cache, patches: &[(&str, &str)]) -> Option<Error> {
        let source = edits::fitting_source();
        fs::write(source.path().join("Makefile"), "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n").expect("written");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let write = |(name, text): &(&str, &str)| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let request = Request {
            source: RequestedSource::Path(source.path().to_owned()),
            patches: patches.iter().map(write).collect(),
            ..Request::default()
        };
        match build(cache, &request, &AtomicBool::new(false), &mut |_| ()) {
            Err(Error::MissingTools(_)) => None,
            other => Some(other.expect_err("there is no kernel in this source")),
        }
    }

    #[test]
    fn a_failing_patch_ends_the_build_and_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cache = Cache::at(directory.path().join("kernels"));
        let fits = "--- a/Makefile\n+++ b/Makefile\n@@ -3 +3 @@\n-SUBLEVEL = 4\n+SUBLEVEL = 5\n";
        let patches = [("a.patch", fits), ("again.patch", fits)];
        let Some(error) = build_patched(&cache, &patches) else {
            landspeed_testkit::skip!("no tools to build a kernel")
        };
        let error = error.to_string();
        assert!(error.starts_with("cannot apply patch again.patch: Makefile: hunk 1 (line 3)"), "{error}");
        assert!(error.contains("\n    SUBLEVEL = 4\nMake the patch against Linux 7.3.4"), "{error}");
        assert_eq!(cache.unfinished().expect("readable"), Vec::<PathBuf>::new());
    }
}
