#!/bin/bash
# Draws results/timeline.png: the page of a recorded cell as it opens, in a headless Chromium.
#     results/figures/timeline.sh RUN CELL
set -eu
run=$(realpath "$1")
cd "$(dirname "$0")/../.."
. ci/tests/web/browser.sh
tmp=$(mktemp -d)
trap 'browser_stop; rm -rf "$tmp"' EXIT
"${OUT:-out}/culprit" timeline "$run" --cell "$2" -o "$tmp/t.html"
browser_start "$tmp/browser"
browser_cdp Emulation.setDeviceMetricsOverride '{"width":1400,"height":760,"deviceScaleFactor":1,"mobile":false}' >/dev/null
browser_cdp Emulation.setEmulatedMedia '{"features":[{"name":"prefers-color-scheme","value":"light"}]}' >/dev/null
browser_open "file://$tmp/t.html"
browser_wait 'document.documentElement.dataset.ready === "true"'
browser_eval 'return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))' >/dev/null
browser_cdp Page.captureScreenshot '{"format":"png"}' data | base64 -d >results/timeline.png
