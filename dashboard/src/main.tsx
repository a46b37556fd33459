import { render } from 'preact';
import { App } from './app.js';
import { SourceContext } from './run-store.js';
import { liveSource } from './source/live-source.js';

const place = document.getElementById('app');
if (place !== null) {
  place.replaceChildren();
  render(
    <SourceContext.Provider value={liveSource}>
      <App />
    </SourceContext.Provider>,
    place,
  );
}
