# Packs into the folder $1 what /app of a machine holds: its regular files (made.tar), and a list of its links (links).
# A repository becomes one file, `.git.bundle`: a task directory with `.git` folders in it could not be committed to another repository.
set -eu
export LC_ALL=C
out=$1
mkdir -p "$out/bundles"
cd /
find app -name .git -prune -o -type f -print0 | sort -z > "$out/names"
tar --create --hard-dereference --no-recursion --null --files-from "$out/names" --file "$out/made.tar"
find app -name .git -prune -o -type l -printf '%p -> %l\n' | sort > "$out/links"
find app -name .git -type d -prune -print0 | sort -z | while IFS= read -r -d '' repository; do
    mkdir -p "$out/bundles/$(dirname "$repository")"
    # An empty one has nothing to bundle. One thread packs the same bytes every time.
    git -C "$(dirname "$repository")" -c safe.directory='*' -c pack.threads=1 bundle create -q "$out/bundles/$repository.bundle" --all 2>/dev/null || true
done
cd "$out/bundles"
find . -type f -printf '%P\0' | sort -z > "$out/names"
tar --append --null --files-from "$out/names" --file "$out/made.tar"
