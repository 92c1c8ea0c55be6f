# SPDX-License-Identifier: Apache-2.0
#
# Holds autopush_standin.py against its real client: a headless Firefox registers a push subscription at it, is pushed
# to, and says what it got. Prints what went wrong and exits with 1, or prints "agrees" and exits with 0.
#
# Usage: firefox_push.py FIREFOX
import contextlib
import http.server
import json
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PATIENCE = 120

# The worker subscribes again and again: a browser that is still starting loses the first wishes, since its parent
# process listens only once the windows are there.
PAGE = b"""<!doctype html><script>
navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready)
    .then(worker => setInterval(() => worker.active.postMessage("subscribe"), 1000));
</script>"""

WORKER = b"""
const report = what => fetch("/report", {method: "POST", body: JSON.stringify(what)});
let isTold = false;
const tell = what => {
    if (isTold) return;
    isTold = true;
    return report(what);
};
self.addEventListener("message", event => event.waitUntil(
    self.registration.pushManager.subscribe({userVisibleOnly: true})
        .then(subscription => tell({endpoint: subscription.endpoint}))
        .catch(error => tell({error: String(error)}))));
self.addEventListener("install", event => event.waitUntil(self.skipWaiting()));
self.addEventListener("activate", event => event.waitUntil(self.clients.claim()));
self.addEventListener("push", event => event.waitUntil(
    report({push: event.data ? event.data.text() : null})));
"""

reports = queue.Queue()


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, content = {
            "/": ("text/html", PAGE), "/worker.js": ("text/javascript", WORKER)
        }.get(self.path, ("text/plain", b""))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def post(url, body=b"", **headers):
    request = urllib.request.Request(
        url, body, {name.replace("_", "-"): value for name, value in headers.items()}, method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.status, json.loads(answer.read() or b"{}")


def expect(what, wanted):
    if what != wanted:
        raise SystemExit(f"expected {wanted}, got {what}")


def talk(http_port):
    first = reports.get(timeout=PATIENCE)
    if "endpoint" not in first:
        raise SystemExit(f"Firefox did not subscribe: {first}")
    # Without a body; Firefox acknowledges once its worker has it.
    expect(post(first["endpoint"], TTL="60")[0], 201)
    expect(reports.get(timeout=PATIENCE), {"push": None})
    # A body that nobody can decrypt: refused by its code.
    expect(post(first["endpoint"], b"\0" * 100, TTL="60", Content_Encoding="aes128gcm")[0], 201)
    # A third behind it, so that both before were dealt with once it is there.
    expect(post(first["endpoint"], TTL="60")[0], 201)
    expect(reports.get(timeout=PATIENCE), {"push": None})
    acks = []
    for _ in range(1000):
        acks = post(f"http://127.0.0.1:{http_port}/control/state")[1]["acks"]
        if len(acks) == 3:
            break
    expect(sorted(ack["code"] for ack in acks), [100, 100, 101])


# The site may notify: nobody is there to be asked.
def allow(home, origin):
    with contextlib.closing(sqlite3.connect(f"{home}/permissions.sqlite")) as database, database:
        database.execute(
            "CREATE TABLE moz_perms (id INTEGER PRIMARY KEY, origin TEXT, type TEXT, permission INTEGER,"
            " expireType INTEGER, expireTime INTEGER, modificationTime INTEGER)")
        database.execute(
            "INSERT INTO moz_perms VALUES (1, ?, 'desktop-notification', 1, 0, 0, ?)",
            (origin, int(time.time() * 1000)))
        database.execute("PRAGMA user_version = 12")


def main():
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    here = os.path.dirname(os.path.abspath(__file__))
    autopush = subprocess.Popen(
        [sys.executable, f"{here}/autopush_standin.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ws_port, http_port = map(int, autopush.stdout.readline().split())
    preferences = {
        "dom.push.enabled": True,
        "dom.push.connection.enabled": True,
        "dom.push.serverURL": f"ws://127.0.0.1:{ws_port}/",
        "dom.push.testing.allowInsecureServerURL": True,
        "dom.serviceWorkers.testing.enabled": True,
        "browser.shell.checkDefaultBrowser": False,
        "datareporting.policy.dataSubmissionEnabled": False,
        "toolkit.telemetry.reportingpolicy.firstRun": False,
        # Nothing leaves this machine.
        "network.proxy.type": 1,
        "network.proxy.http": "127.0.0.1",
        "network.proxy.http_port": 9,
        "network.proxy.ssl": "127.0.0.1",
        "network.proxy.ssl_port": 9,
        "network.proxy.no_proxies_on": "localhost, 127.0.0.1",
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        allow(home, f"http://localhost:{site.server_address[1]}")
        with open(f"{home}/user.js", "w") as file:
            for name, value in preferences.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        firefox = subprocess.Popen(
            [sys.argv[1], "--headless", "--no-remote", "--profile", home,
             f"http://localhost:{site.server_address[1]}/"],
            env={**os.environ, "HOME": home, "MOZ_HEADLESS": "1"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            talk(http_port)
        except queue.Empty:
            raise SystemExit(f"Firefox said nothing for {PATIENCE} s") from None
        finally:
            # Its own session: its other processes, too.
            os.killpg(firefox.pid, signal.SIGKILL)
            firefox.wait()
            autopush.stdin.close()
            autopush.wait()
    print("agrees")


main()
