// One replica: what a deployment starts as often as it likes.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: ['warn', 'error'] });
// Only the proxy on this machine is believed when it says for whom it asks.
app.set('trust proxy', 'loopback');
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000, '127.0.0.1');
process.stdout.write(`replica listening on ${await app.getUrl()}\n`);
