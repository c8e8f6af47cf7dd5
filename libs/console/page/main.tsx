import { render } from 'preact';
import { CONSOLE } from './address.js';
import { App, applyTheme } from './app.js';
import { protectText } from './shown-text.js';
import { restoreAddress } from './sign-in.js';

protectText(CONSOLE);
applyTheme();
restoreAddress();
const root = document.getElementById('console');
if (root) render(<App />, root);
