//! From a source to a kept kernel, in steps that can be interrupted and taken up again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use landspeed_sys::{clock, disk};
use landspeed_units::Bytes;

use super::apt::{self, Apt, Package};
use super::cache::{Cache, lock_of};
use super::child::Job;
use super::config::{self, Features};
use super::edits;
use super::error::Error;
use super::hash::{self, Hasher};
use super::lock::Lock;
use super::make::{ABOUT_OBJECTS, Make, Said};
use super::record::{CONFIG, EXECUTABLE, Kernel, RECORD, SCHEMA, Source};
use super::source;
use super::tools;
use super::version::Version;

/// Digits of the content hash that name a kernel.
const ID_DIGITS: usize = 16;

/// Peak space of a build beside the package file and what is in it: source 0.53 GB, objects 0.1 GB, and some air.
const SPACE_BYTES: u64 = 900_000_000;

/// What to build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Where the source is.
    pub source: Wanted,
    /// Compilers at a time; `None`: as many as there are processors.
    pub jobs: Option<usize>,
    /// Keep the source and the objects.
    pub keep_build: bool,
    /// Build even if it is there.
    pub force: bool,
    /// Debian's mirror; `None`: the host's own, else the default.
    pub mirror: Option<String>,
}

/// Where the source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// In Debian's archive; `None`: the newest.
    Packaged(Option<Version>),
    /// In a tarball or a directory.
    Path(PathBuf),
}

impl Default for Wanted {
    fn default() -> Self {
        Self::Packaged(None)
    }
}

/// The steps of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reading Debian's package index.
    Index,
    /// Reading the source that was given. Counts nothing.
    Read,
    /// Downloading. Counts bytes.
    Download,
    /// Unpacking or copying. Counts files.
    Unpack,
    /// Changing the copy.
    Edit,
    /// Configuring.
    Configure,
    /// Compiling. Counts objects.
    Compile,
    /// Linking.
    Link,
}

/// What a build tells while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step begins; the text says on what.
    Begins(Step, String),
    /// How far the step is. The total may grow.
    Progress {
        /// The step.
        step: Step,
        /// Done so far, in the step's unit.
        done: u64,
        /// To be done.
        total: u64,
    },
    /// Something a person should know.
    Note(String),
}

/// What a build came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The kernel.
    pub kernel: Kernel,
    /// Whether it was built now, as opposed to found.
    pub fresh: bool,
}

/// A source that is known by its content.
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
}

/// Builds a kernel, or finds that it is there. When `interrupted` is raised the work so far is kept, and the same call
/// goes on from there.
pub fn build(
    cache: &Cache,
    request: &Request,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(Event),
) -> Result<Outcome, Error> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Error::Architecture(std::env::consts::ARCH));
    }
    let root = cache.root();
    if root.as_os_str().to_string_lossy().contains([' ', ':', '\t', '\n', '"']) {
        return Err(Error::BadPath(root.to_owned()));
    }
    let from = match &request.source {
        Wanted::Packaged(_) => tools::From::Debian,
        Wanted::Path(path) if path.is_dir() => tools::From::Directory,
        Wanted::Path(path) => tools::From::Tarball(path),
    };
    let missing = tools::missing(&tools::needed(from), &std::env::var_os("PATH").unwrap_or_default());
    if !missing.is_empty() {
        return Err(Error::MissingTools(missing));
    }
    Builder { cache, request, interrupted, watch, compiler: String::new() }.run()
}

impl Builder<'_> {
    fn run(mut self) -> Result<Outcome, Error> {
        self.compiler = self.compiler_version()?;
        let origin = match self.origin() {
            Err(error @ Error::Index { .. }) => return self.without_index(error),
            other => other?,
        };
        let key = self.key(&origin.source);
        let id = &key[..ID_DIGITS];
        if let Some(kernel) = self.kept(id) {
            return Ok(Outcome { kernel, fresh: false });
        }
        let build = self.cache.build_directory(id);
        self.check_space(&origin, &build)?;
        fs::create_dir_all(&build).map_err(Error::io("create", &build))?;
        let Some(lock) = self.lock(&build)? else { return Err(Error::Interrupted(build)) };
        // Whoever held the lock may have built it, and taken the directory away.
        if let Some(kernel) = self.kept(id) {
            if !self.request.keep_build {
                let _ = fs::remove_dir(&build);
            }
            lock.remove();
            return Ok(Outcome { kernel, fresh: false });
        }
        fs::create_dir_all(&build).map_err(Error::io("create", &build))?;
        let source = self.prepare(&origin, &build)?;
        let kernel = self.compile(&origin, id, &build, &source)?;
        if self.request.keep_build {
            self.note(format!("the build tree is kept in {}", build.display()));
        } else {
            fs::remove_dir_all(&build).map_err(Error::io("remove", &build))?;
        }
        lock.remove();
        let _ = build.parent().map(fs::remove_dir);
        Ok(Outcome { kernel, fresh: true })
    }

    /// What the request means, by content.
    fn origin(&mut self) -> Result<Origin, Error> {
        let request = self.request;
        match &request.source {
            Wanted::Packaged(version) => {
                let package = self.package(version.as_ref())?;
                let source = Source::Debian {
                    package: package.name.clone(),
                    version: package.version.clone(),
                    hash: package.hash.clone(),
                };
                Ok(Origin { source, kernel: package.kernel.clone(), material: Material::Package(package) })
            }
            Wanted::Path(path) => {
                let path = fs::canonicalize(path)
                    .map_err(|e| Error::NotAKernel { path: path.clone(), why: e.to_string() })?;
                self.begin(Step::Read, path.display().to_string());
                let stopped = || Error::Interrupted(self.cache.root().to_owned());
                if path.is_dir() {
                    let kernel = source::version_of_directory(&path)?;
                    let files = source::files_of(&path, self.interrupted)?.ok_or_else(stopped)?;
                    let hash = source::hash_of_files(&path, &files, self.interrupted)?.ok_or_else(stopped)?;
                    let source = Source::Directory { path: path.clone(), hash };
                    return Ok(Origin { source, kernel, material: Material::Directory(path, files) });
                }
                let kernel = source::version_of_tarball(&path, self.interrupted)?;
                let hash = hash::file(&path, self.interrupted).map_err(Error::io("read", &path))?;
                let source = Source::Tarball { path: path.clone(), hash: hash.ok_or_else(stopped)? };
                Ok(Origin { source, kernel, material: Material::Tarball(path) })
            }
        }
    }

    fn package(&mut self, version: Option<&Version>) -> Result<Package, Error> {
        self.begin(Step::Index, "Debian's package index".to_owned());
        let directory = self.apt_directory();
        fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
        let Some(_lock) = self.lock(&directory)? else { return Err(Error::Interrupted(directory)) };
        let apt = Apt::new(&directory, self.request.mirror.as_deref(), self.interrupted)?;
        apt::choose(&apt.index()?, version)
    }

    fn apt_directory(&self) -> PathBuf {
        self.cache.root().join(".apt")
    }

    /// Without the index the newest source is unknown; a kernel that is there and fits is still an answer.
    fn without_index(mut self, error: Error) -> Result<Outcome, Error> {
        let Wanted::Packaged(wanted) = &self.request.source else { return Err(error) };
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
        self.note(format!("{error}. Whether there is a newer source is unknown; this one is here"));
        Ok(Outcome { kernel, fresh: false })
    }

    /// The hash over all that decides what is built.
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
            // What is there already cannot be told from what is needed: then the disk itself will say.
            return Ok(());
        }
        let needed = SPACE_BYTES
            + match &origin.material {
                // The package file and the tarball in it are there at the same time.
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

    /// Puts the changed source into the build directory, unless an earlier run did.
    fn prepare(&mut self, origin: &Origin, build: &Path) -> Result<PathBuf, Error> {
        let (source, stamp) = (build.join("source"), build.join("source.ready"));
        if stamp.exists() {
            self.note(format!("going on with what is in {}", build.display()));
            return Ok(source);
        }
        let tarball = match &origin.material {
            Material::Package(package) => Some(self.download(package, build)?),
            Material::Tarball(path) => Some(path.clone()),
            Material::Directory(..) => None,
        };
        // Half a source is worth nothing.
        if source.exists() {
            fs::remove_dir_all(&source).map_err(Error::io("remove", &source))?;
        }
        fs::create_dir_all(&source).map_err(Error::io("create", &source))?;
        self.begin(Step::Unpack, origin.source.to_string());
        let (mut done, watch) = (0, &mut *self.watch);
        let about = if let Material::Directory(_, files) = &origin.material {
            files.len() as u64
        } else {
            source::ABOUT_FILES
        };
        let mut file = || {
            done += 1;
            watch(Event::Progress { step: Step::Unpack, done, total: about.max(done) });
        };
        match (&origin.material, &tarball) {
            (Material::Directory(path, files), _) => source::copy(path, files, &source, self.interrupted, &mut file)?
                .ok_or_else(|| Error::Interrupted(build.to_owned()))?,
            (_, Some(tarball)) => source::unpack(tarball, &source, self.interrupted, &mut file)?,
            (_, None) => unreachable!("what is no directory has a tarball"),
        }
        if matches!(origin.material, Material::Package(_)) && !self.request.keep_build {
            let package = build.join("package");
            fs::remove_dir_all(&package).map_err(Error::io("remove", &package))?;
        }
        self.begin(Step::Edit, format!("{} edits", edits::Edit::all().len()));
        source::edit(&source)?;
        fs::write(&stamp, "").map_err(Error::io("write", &stamp))?;
        Ok(source)
    }

    /// The tarball of a package: downloaded unless it is there whole, checked, taken out.
    fn download(&mut self, package: &Package, build: &Path) -> Result<PathBuf, Error> {
        let directory = build.join("package");
        fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
        let there = self.package_file(&directory, package)?;
        let file = if let Some(file) = there { file } else { self.fetch(package, &directory)? };
        let mut command = Command::new("dpkg-deb");
        command.arg("-x").arg(&file).arg(&directory);
        self.job("unpacking the package", command, build).run(|_| ())?;
        let sources = directory.join("usr/src");
        let tarball = fs::read_dir(&sources)
            .map_err(Error::io("read", &sources))?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".tar")));
        tarball.ok_or_else(|| Error::NotAKernel { path: file, why: "there is no tarball in the package".to_owned() })
    }

    fn fetch(&mut self, package: &Package, directory: &Path) -> Result<PathBuf, Error> {
        self.begin(Step::Download, format!("{} {}", package.name, package.version));
        let apt = Apt::new(&self.apt_directory(), self.request.mirror.as_deref(), self.interrupted)?;
        let (watch, total) = (&mut *self.watch, package.size_bytes);
        apt.download(package, directory, |percent| {
            let done = (percent / 100.0 * total as f64) as u64;
            watch(Event::Progress { step: Step::Download, done, total });
        })?;
        self.package_file(directory, package)?.ok_or_else(|| Error::Command {
            what: "downloading the source".to_owned(),
            status: "no package file came".to_owned(),
            tail: String::new(),
            log: None,
        })
    }

    /// The package file in a directory. One that is not what the index promises is removed.
    fn package_file(&self, directory: &Path, package: &Package) -> Result<Option<PathBuf>, Error> {
        let entries = fs::read_dir(directory).map_err(Error::io("read", directory))?;
        let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
        let Some(file) = entries.flatten().map(|entry| entry.path()).find(is_package) else { return Ok(None) };
        let found = hash::file(&file, self.interrupted)
            .map_err(Error::io("read", &file))?
            .ok_or_else(|| Error::Interrupted(directory.to_owned()))?;
        if found == package.hash {
            return Ok(Some(file));
        }
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        fs::remove_file(&file).map_err(Error::io("remove", &file))?;
        if size < package.size_bytes {
            return Ok(None);
        }
        Err(Error::Checksum { path: file, found, expected: package.hash.clone() })
    }

    fn compile(&mut self, origin: &Origin, id: &str, build: &Path, source: &Path) -> Result<Kernel, Error> {
        let started = clock::monotonic_ns();
        let objects = build.join("objects");
        let log = build.join("build.log");
        let make = Make { source, objects: &objects, log, place: build, interrupted: self.interrupted };
        let missing_features = self.configure(&make)?;
        self.begin(Step::Compile, format!("Linux {}", origin.kernel));
        // What an interrupted run made is not made again.
        let counter = build.join("objects.count");
        let mut done: u64 = fs::read_to_string(&counter).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let watch = &mut *self.watch;
        let jobs = self.request.jobs.unwrap_or_else(processors).max(1);
        let result = make.run("compiling", "vmlinux", jobs, |said| match said {
            Said::Object => {
                done += 1;
                watch(Event::Progress { step: Step::Compile, done, total: ABOUT_OBJECTS.max(done) });
            }
            Said::Link => watch(Event::Begins(Step::Link, EXECUTABLE.to_owned())),
            Said::Other => {}
        });
        let _ = fs::write(&counter, done.to_string());
        result?;
        self.keep(origin, id, build, &objects, missing_features, started)
    }

    /// Configures, unless an earlier run did, and judges what came out. Returns the features that are missing.
    fn configure(&mut self, make: &Make<'_>) -> Result<Vec<String>, Error> {
        let config = make.objects.join(".config");
        let stamp = make.place.join("config.ready");
        self.begin(Step::Configure, String::new());
        if !stamp.exists() {
            fs::create_dir_all(make.objects).map_err(Error::io("create", make.objects))?;
            make.run("configuring", "tinyconfig", 1, |_| ())?;
            let tiny = fs::read_to_string(&config).map_err(Error::io("read", &config))?;
            // Of two lines about one symbol the later counts.
            fs::write(&config, tiny + config::FRAGMENT).map_err(Error::io("write", &config))?;
            make.run("configuring", "olddefconfig", 1, |_| ())?;
        }
        let text = fs::read_to_string(&config).map_err(Error::io("read", &config))?;
        let difference = config::compare(config::FRAGMENT, &Features::parse(&text));
        if !difference.core.is_empty() {
            return Err(Error::Config(difference.core));
        }
        if !difference.features.is_empty() {
            self.note(format!(
                "this version has no {}: scenarios that need it are refused",
                difference.features.join(", ")
            ));
        }
        if !difference.on.is_empty() {
            self.note(format!("this version insists on {}: runs may be slower", difference.on.join(", ")));
        }
        fs::write(&stamp, "").map_err(Error::io("write", &stamp))?;
        Ok(difference.features)
    }

    /// Puts executable, configuration and record in their place, all at once.
    fn keep(
        &mut self,
        origin: &Origin,
        id: &str,
        build: &Path,
        objects: &Path,
        missing_features: Vec<String>,
        started: u64,
    ) -> Result<Kernel, Error> {
        let ready = build.join("ready");
        if ready.exists() {
            fs::remove_dir_all(&ready).map_err(Error::io("remove", &ready))?;
        }
        fs::create_dir_all(&ready).map_err(Error::io("create", &ready))?;
        let executable = ready.join(EXECUTABLE);
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&executable).arg(objects.join("vmlinux"));
        self.job("stripping the kernel", strip, build).run(|_| ())?;
        let mut version = Command::new(&executable);
        version.arg("--version");
        let said = self.job("starting the kernel", version, build).output().map_err(|error| match error {
            Error::Interrupted(place) => Error::Interrupted(place),
            other => Error::DoesNotRun(other.to_string()),
        })?;
        let release = said.split_whitespace().next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let release = release.ok_or_else(|| {
            Error::DoesNotRun(format!("it should say {}, and says `{}`", origin.kernel, said.trim()))
        })?;
        fs::copy(objects.join(".config"), ready.join(CONFIG)).map_err(Error::io("write", &ready))?;
        let hash = hash::file(&executable, self.interrupted).map_err(Error::io("read", &executable))?;
        let kernel = Kernel {
            schema: SCHEMA.to_owned(),
            id: id.to_owned(),
            release: release.to_owned(),
            executable: self.cache.kernel_directory(id).join(EXECUTABLE),
            source: origin.source.clone(),
            config_hash: config_hash(),
            edits_hash: edits::hash(),
            compiler: self.compiler.clone(),
            built_at_ns: clock::realtime_ns(),
            build_seconds: (clock::monotonic_ns() - started) as f64 / 1e9,
            size_bytes: executable.metadata().map_err(Error::io("read", &executable))?.len(),
            executable_hash: hash.ok_or_else(|| Error::Interrupted(build.to_owned()))?,
            missing_features,
        };
        let record = ready.join(RECORD);
        let text = serde_json::to_string_pretty(&kernel).expect("a record is plain data");
        fs::write(&record, text).map_err(Error::io("write", &record))?;
        if let Some(old) = self.cache.exact(id) {
            self.cache.remove(&old)?;
        }
        let place = self.cache.kernel_directory(id);
        if place.exists() {
            // Half a kernel, left by something that is not us.
            fs::remove_dir_all(&place).map_err(Error::io("remove", &place))?;
        }
        fs::rename(&ready, &place).map_err(Error::io("create", &place))?;
        Ok(kernel)
    }

    fn compiler_version(&self) -> Result<String, Error> {
        let mut command = Command::new("gcc");
        command.arg("--version");
        let said = self.job("asking the compiler its version", command, self.cache.root()).output()?;
        Ok(said.lines().next().unwrap_or_default().to_owned())
    }

    /// The lock beside a directory, waited for.
    fn lock(&mut self, directory: &Path) -> Result<Option<Lock>, Error> {
        let watch = &mut *self.watch;
        Lock::take(&lock_of(directory), self.interrupted, |holder| {
            let who = holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            watch(Event::Note(format!("{who} is at it already; waiting for it")));
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

/// The hash of the configuration that is asked for.
fn config_hash() -> String {
    let mut hasher = Hasher::default();
    hasher.field(config::FRAGMENT.as_bytes());
    hasher.hex()
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
