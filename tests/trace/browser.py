# SPDX-License-Identifier: MIT
"""A headless Chromium, driven over its DevTools pipe; needs nothing but Python."""
import base64, json, os, select, shutil, subprocess, tempfile, time


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)


class Browser:
    def __init__(self, width=1300, height=1000):
        self.folder = tempfile.mkdtemp(prefix='somashim-browser-')
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        high = [os.dup(to_read), os.dup(back_write)]

        def connect():
            a, b = os.dup(high[0]), os.dup(high[1])
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [find(), '--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe',
             '--disable-dev-shm-usage', '--no-first-run', '--user-data-dir=' + self.folder,
             '--window-size=%d,%d' % (width, height), 'about:blank'],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=connect, pass_fds=(3, 4))
        for fd in (to_read, back_write, *high):
            os.close(fd)
        self.buffer, self.next, self.events, self.session = b'', 0, [], None
        target = self.call('Target.createTarget', url='about:blank')
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'],
                                 flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(domain + '.enable')

    def message(self, seconds):
        """The next message, or None after some seconds."""
        end = time.monotonic() + seconds
        while b'\0' not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            data = os.read(self.back, 1 << 20)
            if not data:
                raise RuntimeError('the browser has ended')
            self.buffer += data
        one, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(one)

    def call(self, method, **params):
        self.next += 1
        command = {'id': self.next, 'method': method, 'params': params}
        if self.session:
            command['sessionId'] = self.session
        os.write(self.to, json.dumps(command).encode() + b'\0')
        while True:
            m = self.message(240)
            if m is None:
                raise RuntimeError('no answer to ' + method)
            if m.get('id') == self.next:
                if 'error' in m:
                    raise RuntimeError('%s: %s' % (method, m['error']))
                return m['result']
            self.events.append(m)

    def open(self, url):
        self.call('Page.navigate', url=url)
        end = time.monotonic() + 240
        while not any(e.get('method') == 'Page.loadEventFired' for e in self.events):
            if time.monotonic() > end:
                raise RuntimeError('the page does not load')
            m = self.message(1)
            if m:
                self.events.append(m)

    def evaluate(self, script):
        got = self.call('Runtime.evaluate', expression=script, returnByValue=True)
        if 'exceptionDetails' in got:
            raise RuntimeError('%s: %s' % (script, got['exceptionDetails']))
        return got['result'].get('value')

    def box(self, selector):
        """Position and size of an element, which is scrolled into view."""
        return self.evaluate('(() => { const e = document.querySelector(%s);'
                             'e.scrollIntoView({block: "center"}); const b = e.getBoundingClientRect();'
                             'return {x: b.x, y: b.y, width: b.width, height: b.height}; })()'
                             % json.dumps(selector))

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ('mousePressed', 'mouseReleased'):
            self.mouse(kind, x, y, button='left', clickCount=1)

    def complaints(self):
        """What the page wrote to the console as errors, exceptions, and requests to a network."""
        out = []
        for e in self.events:
            method, p = e.get('method'), e.get('params', {})
            if method == 'Runtime.exceptionThrown':
                out.append(json.dumps(p)[:500])
            elif method == 'Runtime.consoleAPICalled' and p['type'] in ('error', 'assert', 'warning'):
                out.append(json.dumps(p)[:500])
            elif method == 'Log.entryAdded' and p['entry']['level'] in ('error', 'warning'):
                out.append(p['entry']['text'])
            elif method == 'Network.requestWillBeSent' and \
                    not p['request']['url'].startswith(('file:', 'data:', 'about:')):
                out.append('request to ' + p['request']['url'])
        return out

    def screenshot(self, path, whole=True):
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=whole)['data']
        with open(path, 'wb') as f:
            f.write(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)
