import 'reflect-metadata';
import { ValidationPipe, VersioningType } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { ServerResponse } from 'node:http';
import { AppModule } from './app.module.js';

// HTTP=fastify: nothing else of this application differs.
const adapter = process.env['HTTP'] === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
const app = await NestFactory.create(AppModule, adapter, { logger: ['warn', 'error'] });
app.setGlobalPrefix('api');
app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
app.enableShutdownHooks();
app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
app.use((_request: unknown, response: ServerResponse, next: () => void) => {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('X-Frame-Options', 'DENY');
  next();
});
await app.listen(app.get(ConfigService).get('PORT', 3000), '127.0.0.1');
console.log(`Repairs listening on ${await app.getUrl()}`);
