#!/usr/bin/env bash
# Runs each staged GPU test under a time limit of its own and prints one line for it. tools/stage puts this script
# beside the tests.
#   run_gpu_tests.sh [PATTERN]        only tests whose name matches the regular expression
# FLYWHEEL_LOGS names the folder for the logs (default: logs beside the script). FLYWHEEL_MOST_SECONDS is the most that a
# test may take whatever its own limit (default: 120, for a GPU that hangs is lent by the minute). Status 1 when a test did
# not pass.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
./unpack || exit 1
pattern=${1:-.}
logs=${FLYWHEEL_LOGS:-$PWD/logs} most=${FLYWHEEL_MOST_SECONDS:-120}
mkdir -p "$logs"
export FLYWHEEL_BUILD_DIR=$PWD

# What an exit status means; ctest reads 77 as skipped, too.
outcome() {
  case $1 in
    0) echo pass ;;
    77) echo skip ;;
    124 | 137) echo TIMEOUT ;;
    *) echo "FAIL($1)" ;;
  esac
}

bad=0 ran=0 skipped=0
printf '%-40s %-10s %8s  %s\n' test outcome seconds 'last line'
while read -r name seconds; do
  [[ "$name" =~ $pattern ]] || continue
  ((seconds <= most)) || seconds=$most
  begun=$(date +%s.%N)
  timeout --kill-after=5 "$seconds" "tests/$name" >"$logs/$name.log" 2>&1 </dev/null
  word=$(outcome $?)
  took=$(awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
  printf '%-40s %-10s %8s  %s\n' "$name" "$word" "$took" "$(grep -v '^\s*$' "$logs/$name.log" | tail -n 1 | cut -c 1-100)"
  ran=$((ran + 1))
  [[ "$word" == skip ]] && skipped=$((skipped + 1))
  [[ "$word" == pass || "$word" == skip ]] || bad=$((bad + 1))
done <tests.txt

if ((ran == 0)); then
  echo "run_gpu_tests: no test matches '$pattern'; tests.txt lists them"
  exit 1
fi
if ((skipped == ran)); then
  echo "run_gpu_tests: FAILED, all $ran were skipped, so nothing was tested; the logs in $logs say why"
  exit 1
fi
echo "run_gpu_tests: $((ran - bad)) of $ran without failure, logs in $logs"
((bad == 0))
