//! The first half of a build: identifying the requested source, and preparing the edited source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Builder, Event, Material, Origin, RequestedSource, Step};
use crate::kernel::apt::{self, Apt, Package};
use crate::kernel::error::Error;
use crate::kernel::record::Source;
use crate::kernel::version::Version;
use crate::kernel::{edits, hash, source};

impl Builder<'_> {
    /// Identifies the requested source by its content.
    pub(super) fn origin(&mut self) -> Result<Origin, Error> {
        let request = self.request;
        match &request.source {
            RequestedSource::Packaged(version) => {
                let package = self.package(version.as_ref())?;
                let source = Source::Debian {
                    package: package.name.clone(),
                    version: package.version.clone(),
                    hash: package.hash.clone(),
                };
                Ok(Origin { source, kernel: package.kernel.clone(), material: Material::Package(package) })
            }
            RequestedSource::Path(path) => {
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
        apt::choose(&self.open_index()?, version)
    }

    /// Reads the package index, and keeps it for the download.
    fn open_index(&mut self) -> Result<Vec<Package>, Error> {
        self.begin(Step::Index, "Debian's package index".to_owned());
        let (root, directory) = (self.cache.root(), self.cache.index_directory());
        fs::create_dir_all(root).map_err(Error::io("create", root))?;
        let Some(lock) = self.lock(&directory)? else { return Err(Error::Interrupted(directory)) };
        let apt = Apt::new(&directory, self.request.mirror.as_deref(), self.interrupted)?;
        let (_, apt) = self.index.insert((lock, apt));
        apt.index()
    }

    /// Removes the package index: reading its hundred megabytes again is cheaper than keeping them.
    pub(super) fn release_index(&mut self) {
        if let Some((lock, _)) = self.index.take() {
            let _ = fs::remove_dir_all(self.cache.index_directory());
            lock.remove();
        }
    }

    /// Puts the edited source into the build directory, unless an earlier run did.
    pub(super) fn prepare(&mut self, origin: &Origin, build: &Path) -> Result<PathBuf, Error> {
        let (source, stamp) = (build.join("source"), build.join("source.ready"));
        if stamp.exists() {
            self.note(format!("continuing the build in {}", build.display()));
            return Ok(source);
        }
        let tarball = match &origin.material {
            Material::Package(package) => Some(self.download(package, build)?),
            Material::Tarball(path) => Some(path.clone()),
            Material::Directory(..) | Material::Tree(_) => None,
        };
        // A partial source cannot be used.
        if source.exists() {
            fs::remove_dir_all(&source).map_err(Error::io("remove", &source))?;
        }
        if let Material::Tree(tree) = &origin.material {
            self.begin(Step::Unpack, format!("a copy of {}", tree.display()));
            let lock = self.lock(tree)?.ok_or_else(|| Error::Interrupted(build.to_owned()))?;
            source::copy_tree(&tree.join("source"), &source, self.interrupted)?;
            lock.remove();
            self.patch(origin, build, &source)?;
            fs::write(&stamp, "").map_err(Error::io("write", &stamp))?;
            return Ok(source);
        }
        fs::create_dir_all(&source).map_err(Error::io("create", &source))?;
        self.begin(Step::Unpack, origin.source.to_string());
        let (mut done, watch) = (0, &mut *self.watch);
        let about = if let Material::Directory(_, files) = &origin.material {
            files.len() as u64
        } else {
            source::APPROX_FILES
        };
        let mut file = || {
            done += 1;
            watch(Event::Progress { step: Step::Unpack, done, total: about.max(done) });
        };
        match (&origin.material, &tarball) {
            (Material::Directory(path, files), _) => source::copy(path, files, &source, self.interrupted, &mut file)?
                .ok_or_else(|| Error::Interrupted(build.to_owned()))?,
            (_, Some(tarball)) => source::unpack(tarball, &source, self.interrupted, &mut file)?,
            (_, None) => unreachable!("a source that is neither a directory nor a build tree has a tarball"),
        }
        if matches!(origin.material, Material::Package(_)) && !self.request.keep_build {
            let package = build.join("package");
            fs::remove_dir_all(&package).map_err(Error::io("remove", &package))?;
        }
        self.begin(Step::Edit, format!("{} edits", edits::Edit::all().len()));
        source::edit(&source)?;
        self.patch(origin, build, &source)?;
        fs::write(&stamp, "").map_err(Error::io("write", &stamp))?;
        Ok(source)
    }

    /// Applies the patches of the user to the edited source.
    fn patch(&mut self, origin: &Origin, build: &Path, source: &Path) -> Result<(), Error> {
        for number in 0..self.patches.len() {
            self.begin(Step::Edit, self.patches[number].file.clone());
            let patch = &self.patches[number];
            let copy = build.join(patch.copy_name(number));
            patch.apply(source, &copy, &origin.kernel, self.interrupted)?;
        }
        Ok(())
    }

    /// Returns the tarball of a package, which is downloaded unless it is complete, verified, and unpacked.
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
        tarball.ok_or_else(|| Error::NotAKernel { path: file, why: "the package contains no tarball".to_owned() })
    }

    fn fetch(&mut self, package: &Package, directory: &Path) -> Result<PathBuf, Error> {
        if self.index.is_none() {
            // The index was released while another process was building, which then did not finish.
            self.open_index()?;
        }
        self.begin(Step::Download, format!("{} {}", package.name, package.version));
        let Some((_, apt)) = &self.index else { unreachable!("opened above") };
        let (watch, total) = (&mut *self.watch, package.size_bytes);
        apt.download(package, directory, |percent| {
            let done = (percent / 100.0 * total as f64) as u64;
            watch(Event::Progress { step: Step::Download, done, total });
        })?;
        self.package_file(directory, package)?.ok_or_else(|| Error::Command {
            what: "downloading the source".to_owned(),
            status: "no package file was downloaded".to_owned(),
            tail: String::new(),
            log: None,
        })
    }

    /// Returns the package file in a directory. A file that does not match the index is removed.
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
}
