/** Drives a headless Chromium through its debugging pipe: opens a page, evaluates in it, clicks, takes pictures. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { stopwatch, takesTime } from './time-and-chance.js';

const NAMES =
  process.env.CHROMIUM === undefined ? ['chromium', 'chromium-browser', 'google-chrome'] : [process.env.CHROMIUM];

/** The Chromium of this machine. Undefined if there is none. */
export const chromium = NAMES.find((name) => spawnSync(name, ['--version']).status === 0);

const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--hide-scrollbars',
  '--remote-debugging-pipe',
];

/** Headless Chromium offers WebGPU, on its software driver, only with these flags. */
export const SOFTWARE_GPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];

interface Answer {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

/** One page of a headless browser. */
export class BrowserPage {
  readonly #process: ChildProcess;
  readonly #profile: string;
  readonly #input: Writable;
  readonly #waiting = new Map<number, { resolve(value: Record<string, unknown>): void; reject(error: Error): void }>();
  /** Errors and refusals that the page wrote to its console. */
  readonly problems: string[] = [];
  #session = '';
  #next = 0;

  private constructor(name: string, flags: readonly string[]) {
    this.#profile = mkdtempSync(join(tmpdir(), 'drmas-browser-'));
    this.#process = spawn(name, [...FLAGS, ...flags, `--user-data-dir=${this.#profile}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#input = this.#process.stdio[3] as Writable;
    this.#input.on('error', () => {}); // the browser was ended
    let rest = '';
    const output = this.#process.stdio[4] as Readable;
    output.setEncoding('utf8').on('data', (part: string) => {
      const messages = (rest + part).split('\0');
      rest = messages.pop() ?? '';
      for (const message of messages) this.#hear(JSON.parse(message) as Answer);
    });
    this.#process.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the browser ended'));
    });
  }

  /** Opens a page of a given size, in a browser with further flags. */
  static async open(
    url: string,
    { width = 1280, height = 800, dark = false, scale = 1, flags = [] as readonly string[] } = {},
  ): Promise<BrowserPage> {
    if (chromium === undefined) throw new Error('there is no Chromium here');
    const page = new BrowserPage(chromium, flags);
    const { targetId } = await page.#send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await page.#send('Target.attachToTarget', { targetId, flatten: true });
    page.#session = String(sessionId);
    await page.#send('Page.enable');
    await page.#send('Runtime.enable');
    await page.#send('Log.enable');
    await page.#send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: false });
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
    await page.#send('Emulation.setEmulatedMedia', { features });
    await page.go(url);
    return page;
  }

  async go(url: string): Promise<void> {
    await this.#send('Page.navigate', { url });
  }

  /** The value of an expression in the page. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.#send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return (result as { value?: unknown }).value;
  }

  /** Waits until the page has a body, and an expression in it is true. */
  async until(expression: string, seconds = 20): Promise<void> {
    for (const passed = stopwatch(); passed() < seconds; ) {
      if ((await this.evaluate(`document.body !== null && Boolean(${expression})`)) === true) return;
      await takesTime(50);
    }
    const text = String(await this.evaluate('document.body.innerText')).slice(0, 1500);
    throw new Error(`waited ${seconds} s for ${expression}; the page shows: ${text}`);
  }

  /** Clicks the first element of a selector whose text holds some words. */
  async click(selector: string, words = ''): Promise<void> {
    const element = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((one) => (one.textContent + (one.getAttribute('aria-label') ?? '')).includes(${JSON.stringify(words)}))`;
    await this.until(element);
    await this.evaluate(`${element}.click()`);
  }

  /** Presses Enter on the element that has the focus, or Tab to move the focus on. */
  async press(key: 'Enter' | 'Tab'): Promise<void> {
    const keyed = key === 'Enter' ? { windowsVirtualKeyCode: 13, text: '\r' } : { windowsVirtualKeyCode: 9 };
    const event = { key, code: key, ...keyed };
    await this.#send('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
    await this.#send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  }

  /** Types a text into an input, as a person does: the page hears of it. */
  async type(selector: string, text: string): Promise<void> {
    await this.until(`document.querySelector(${JSON.stringify(selector)})`);
    await this.evaluate(
      `(() => { const field = document.querySelector(${JSON.stringify(selector)}); field.value = ${JSON.stringify(text)}; field.dispatchEvent(new Event('input', { bubbles: true })); field.dispatchEvent(new Event('change', { bubbles: true })); })()`,
    );
  }

  /** Waits until the page shows a text. */
  says(text: RegExp): Promise<void> {
    return this.until(`${text}.test(document.body.innerText)`);
  }

  /** Writes a picture of the page, or of as much of it as is `height` high. */
  async picture(path: string, clip?: { width: number; height: number }): Promise<void> {
    const { data } = await this.#send('Page.captureScreenshot', {
      format: path.endsWith('.webp') ? 'webp' : 'png',
      ...(path.endsWith('.webp') ? { quality: 88 } : {}),
      ...(clip === undefined ? {} : { clip: { x: 0, y: 0, scale: 1, ...clip }, captureBeyondViewport: true }),
    });
    await writeFile(path, Buffer.from(String(data), 'base64'));
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    // The whole group: Chromium's own processes outlive it by a moment, and write to the profile.
    if (this.#process.pid !== undefined) process.kill(-this.#process.pid, 'SIGKILL');
    await ended;
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }).catch(() => {});
  }

  #send(method: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const id = ++this.#next;
    const message = { id, method, params, ...(this.#session === '' ? {} : { sessionId: this.#session }) };
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#input.write(`${JSON.stringify(message)}\0`);
    });
  }

  #hear({ id, result = {}, error, method, params = {} }: Answer): void {
    if (method === 'Log.entryAdded') {
      const { level, text } = params.entry as { level: string; text: string };
      if (level === 'error') this.problems.push(text);
    }
    if (method === 'Runtime.exceptionThrown') this.problems.push(JSON.stringify(params.exceptionDetails));
    const waiting = id === undefined ? undefined : this.#waiting.get(id);
    if (id === undefined || waiting === undefined) return;
    this.#waiting.delete(id);
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(new Error(error.message));
  }
}
