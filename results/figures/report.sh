#!/bin/bash
# Draws a picture of a run's report with one cell open, in a headless Chromium; METRIC in place of the one with which it opens.
#     results/figures/report.sh RUN CELL PICTURE.png [METRIC]
set -eu
run=$(realpath "$1") cell=$2 picture=$(realpath "$3") metric=${4-}
cd "$(dirname "$0")/../.."
. ci/tests/web/browser.sh
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT
"${OUT:-out}/culprit" report "$run" -o "$tmp/r.html" >/dev/null
browser_start "$tmp/browser" --disable-lcd-text
browser_cdp Emulation.setDeviceMetricsOverride '{"width":1280,"height":650,"deviceScaleFactor":1,"mobile":false}' >/dev/null
browser_cdp Emulation.setEmulatedMedia '{"features":[{"name":"prefers-color-scheme","value":"light"}]}' >/dev/null
browser_open "file://$tmp/r.html"
browser_eval "document.getElementById('cell-$cell').click(); document.getElementById('cell-$cell').scrollIntoView()" >/dev/null
[[ ! $metric ]] || browser_eval "const s = document.querySelector('#panel-$cell select'); s.value = '$metric'; s.dispatchEvent(new Event('change'))" >/dev/null
browser_eval 'return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))' >/dev/null
browser_cdp Page.captureScreenshot '{"format":"png"}' data | base64 -d >"$picture"
