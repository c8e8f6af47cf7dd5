import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { startIdentityProvider } from './identity-provider.js';

// How clients know the service, and whom tokens must be meant for.
const audience = process.env['AUDIENCE'] ?? 'https://invoices.example/mcp';
// Yours, where there is one; for a start from a checkout one of our own.
const issuer = process.env['ISSUER'] ?? (await startIdentityProvider(audience));

const app = await NestFactory.create(AppModule.over({ issuer, audience }), { logger: ['warn', 'error'] });
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000, '127.0.0.1');
console.log(`Tokens from ${issuer}\nInvoices listening on ${await app.getUrl()}`);
