import { render } from 'preact';
import { EMBEDDED_ID, type EmbeddedReport } from '../../src/runs/analysis.js';
import { App } from './app.js';
import { SourceContext } from './run-store.js';
import { embeddedSource } from './source/embedded-source.js';
import { liveSource } from './source/live-source.js';

const place = document.getElementById('app');
const embedded = document.getElementById(EMBEDDED_ID)?.textContent;
const source = embedded ? embeddedSource(JSON.parse(embedded) as EmbeddedReport) : liveSource;
if (place !== null) {
  place.replaceChildren();
  render(
    <SourceContext.Provider value={source}>
      <App />
    </SourceContext.Provider>,
    place,
  );
}
