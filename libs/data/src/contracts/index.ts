export * from './music-classes.js';
