set -e
here=$(cd "$(dirname "$0")" && pwd); root=${1:?the checkout}; cd "$root"
npx tsx "$here/codemod.mts" "$root" > report.txt
grep -v UNRES report.txt || true
npx biome check --write $(git diff --cached --name-only --diff-filter=d | grep -E '\.(ts|tsx|mts|mjs|vue|json)$') 2>&1 | tail -3
git add -A .
git commit -qm "Move the engine with its foundation to packages/engine

The engine, the rooms below it, the C++ kernels and the worker in Python become
files of one package. Others import the engine by the names of its doors. The
move is by a program: paths and imports change, and no code does. The next
commits make the package."
git log --oneline -1; git show --stat HEAD | tail -1
python3 "$here/reflow.py"
git add -A; git commit -q --amend --no-edit
