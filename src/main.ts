import { launch } from './launch/launch.js';

await launch('service');
