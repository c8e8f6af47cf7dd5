export * from './tool.js';
