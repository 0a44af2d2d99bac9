# Functions that the other scripts share. They source this file, which leaves them in the root of
# the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN="${GOTOOLCHAIN:-local}"
# What has been built in one clone or by one script is not built again by another, nor in the folders
# that suites and tests make.
GOFLAGS="$(go env GOFLAGS) -trimpath"
export GOFLAGS

# modules prints the import path and the folder of every module in go.work.
modules() { go list -m -f '{{.Path}} {{.Dir}}'; }

# module_folders prints the folders only.
module_folders() { go list -m -f '{{.Dir}}'; }

# outside prints the folders of the modules that say in their go.mod why they are not in go.work.
outside() {
	local file
	while read -r file; do
		if grep -q '^// outside go.work: ' "$file"; then dirname "$PWD/$file"; fi
	done < <(files '*go.mod')
}

# files prints the files that git knows or could add, matching the patterns.
files() {
	local file
	git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
		while read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done
}

# base prints the commit that changes are counted from: BASE, or where the branch has left main, or on main itself the
# commit before. It prints nothing where a clone does not have it.
base() {
	local main
	if [ -n "${BASE:-}" ]; then
		git rev-parse --verify --quiet "$BASE^{commit}" || true
		return
	fi
	for main in origin/main main; do
		git rev-parse --verify --quiet "$main^{commit}" >/dev/null || continue
		main=$(git merge-base HEAD "$main") || continue
		if [ "$main" = "$(git rev-parse HEAD)" ]; then main=HEAD^; fi
		git rev-parse --verify --quiet "$main^{commit}" || true
		return
	done
}

# changed_since prints the files that differ from a commit, with those that git does not know yet.
changed_since() {
	git diff --name-only "$1" --
	git ls-files --others --exclude-standard
}

# changed_peers prints the folders in arena/peers that have changed since base, all of them where what they share has
# changed, where no base is known, and with PEERS=all.
changed_peers() {
	local since changed
	since=$(base)
	changed=$(if [ -n "$since" ]; then changed_since "$since"; fi)
	if [ "${PEERS:-}" = all ] || [ -z "$since" ] || grep -qE '^arena/(workload|java|cpp)/' <<<"$changed"; then
		ls arena/peers
	else
		sed -n 's|^arena/peers/\([^/]*\)/.*|\1|p' <<<"$changed"
	fi
}

# parallel prints how many packages are tested at a time: at least four, because many of them wait.
parallel() { local n; n=$(nproc); echo $((n < 4 ? 4 : n)); }

# title prints what comes next.
title() { printf '\n== %s\n' "$*"; }

# need makes sure that a command is there, and installs its Debian packages where it can.
#	need gcc gcc libc6-dev
need() {
	local command=$1
	shift
	if command -v "$command" >/dev/null; then return; fi
	if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
		echo "installing $*, for $command"
		apt-get install -qq -y --no-install-recommends "$@" >/dev/null 2>&1 ||
			{ apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@"; } >/dev/null 2>&1 || true
	fi
	command -v "$command" >/dev/null || {
		echo "$command is missing and cannot be installed from here: install $* and run this again" >&2
		return 1
	}
}

# tools builds the checkers that internal/lint pins into bin.
tools() {
	GOWORK=off GOBIN="$PWD/bin" go -C internal/lint install honnef.co/go/tools/cmd/staticcheck mvdan.cc/gofumpt mvdan.cc/unparam ./nits ./sourcevet ./versions
}

# written prints the Go files that a person wrote.
written() { files '*.go' | xargs -r grep -L -E '^// Code generated .* DO NOT EDIT\.$' || true; }

# report ends a script: it names what the array failed holds, and fails if that is anything.
report() {
	if [ ${#failed[@]} = 0 ]; then return; fi
	printf '\n%s failed:\n' "$0" >&2
	printf '  %s\n' "${failed[@]}" >&2
	return 1
}
