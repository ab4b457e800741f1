//! An image with the machine's own C compiler, for builds in containers: what a compile and a link of plain C need, beside
//! Python and a shell, and nothing else.

use std::process::Command;

use super::daemons::{FILES, SYSTEM_PATH, TestDaemon};

/// The image.
pub(crate) const COMPILER: &str = "isobench-test:compiler";

/// Prints further files after those of [`FILES`], by whose functions it finds them.
const COMPILER_FILES: &str = r##"
import shutil
def says(*arguments):
    return subprocess.run(["cc", *arguments], capture_output=True, text=True, check=True).stdout.strip()
for name in ["cc", "as", "ld", "sh", "cat", "cp", "mkdir", "rm", "sleep", "touch", "ls"]:
    place = shutil.which(name)
    add(place)
    link(os.path.realpath(place))
for name in ["cc1", "collect2", "lto-wrapper"]:
    place = says("-print-prog-name=" + name)
    add(place)
    link(os.path.realpath(place))
# The compiler's own headers, objects and plugin, but for other languages and what only a static link needs.
own = os.path.dirname(says("-print-libgcc-file-name"))
left_out = ("plugin", "cc1", "lto1", "lto-wrapper", "g++-mapper", "libstdc++", "libasan", "libtsan", "libubsan", "liblsan")
for folder, folders, files in os.walk(own):
    folders[:] = [name for name in folders if name not in left_out]
    for name in files:
        if not name.startswith(left_out):
            add(os.path.join(folder, name))
for name in ["crti.o", "crtn.o", "crt1.o", "Scrt1.o", "libc.so", "libc_nonshared.a", "libm.so", "libmvec.so.1", "libm.so.6", "libc.so.6", "libgcc_s.so.1"]:
    place = says("-print-file-name=" + name)
    if os.path.isabs(place):
        add(os.path.normpath(place))
        found.add(os.path.realpath(place))
probe = "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
headers = subprocess.run(["cc", "-M", "-x", "c", "-"], input=probe, capture_output=True, text=True, check=True).stdout
for word in headers.replace("\\\n", " ").split():
    if word.startswith("/"):
        found.add(os.path.normpath(word))
for folder in ["/bin", "/lib", "/lib64", "/sbin"]:
    if os.path.islink(folder):
        found.add(folder)
print("\n".join(sorted(os.path.normpath(path).lstrip("/") for path in found if os.path.lexists(path))))
"##;

impl TestDaemon {
    /// Makes [`COMPILER`], and returns whether this machine has a compiler to make it of.
    pub(crate) fn make_compiler_image(&self) -> bool {
        if Command::new("cc").arg("--version").env("PATH", SYSTEM_PATH).output().is_err() {
            println!("skipped: there is no C compiler `cc` to make an image of");
            return false;
        }
        self.import(&format!("{FILES}{COMPILER_FILES}"), COMPILER);
        true
    }

    /// Makes an image that differs from another one by these variables.
    pub(crate) fn make_with_variables(&self, (from, to): (&str, &str), variables: &[&str]) {
        let changes: Vec<String> = variables.iter().map(|variable| format!("ENV {variable}")).collect();
        let changes: Vec<&str> = changes.iter().flat_map(|change| ["--change", change]).collect();
        let container = self.docker_says(&["create", from, "none"]);
        self.docker_says(&[&["commit"], &changes[..], &[&container, to]].concat());
        self.docker_says(&["rm", &container]);
    }
}
