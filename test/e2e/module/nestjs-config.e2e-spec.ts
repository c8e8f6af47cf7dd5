import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { ConfigModule, ConfigService, registerAs } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { Parley, ParleyModule, type ParleyModuleOptions, type ParleyOptionsFactory } from '@parley/server';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

const options = (uri: string): ParleyModuleOptions => ({
  database: { uri },
  policy: POSTS_POLICY,
  agents: { desk: { permissions: 'readonly', tenantId: 'acme' } },
});

/** Opens an application and counts its posts as an agent. */
async function countedIn(...imports: Parameters<typeof Test.createTestingModule>[0]['imports'] & object) {
  const app = await Test.createTestingModule({ imports }).compile();
  await app.init();
  try {
    const parley = app.get<Parley>(Parley);
    const agent = parley.agentFor({ agent: 'desk', principal: 'test' });
    const { body } = await parley.handle(
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'count_objects', arguments: { class_name: 'Post' } },
      },
      agent,
    );
    return body;
  } finally {
    await app.close();
  }
}

const ONE_ANSWER = { result: { structuredContent: { count: expect.any(Number) as number } } };

describe('options from @nestjs/config', () => {
  it('come from the ConfigService that the factory injects', async () => {
    const body = await countedIn(
      ConfigModule.forRoot({
        isGlobal: true,
        ignoreEnvFile: true,
        load: [() => ({ MONGODB_URI: posts.uri })],
      }),
      ParleyModule.forRootAsync({
        inject: [ConfigService],
        useFactory: (config: ConfigService) => options(config.getOrThrow('MONGODB_URI')),
      }),
    );
    expect(body).toMatchObject(ONE_ANSWER);
  });

  it('come from a namespace that is registered as a provider', async () => {
    const parleyConfig = registerAs('parley', () => options(posts.uri));
    const body = await countedIn(
      ConfigModule.forRoot({ ignoreEnvFile: true }),
      ParleyModule.forRootAsync(parleyConfig.asProvider()),
    );
    expect(body).toMatchObject(ONE_ANSWER);
  });
});

@Injectable()
class PostsOptions implements ParleyOptionsFactory {
  createParleyOptions(): ParleyModuleOptions {
    return options(posts.uri);
  }
}

@Module({ providers: [PostsOptions], exports: [PostsOptions] })
class OptionsModule {}

describe('options from a ParleyOptionsFactory', () => {
  it('come from a class that the module makes', async () => {
    const body = await countedIn(ParleyModule.forRootAsync({ useClass: PostsOptions }));
    expect(body).toMatchObject(ONE_ANSWER);
  });

  it('come from a provider that another module exports', async () => {
    const body = await countedIn(
      ParleyModule.forRootAsync({ imports: [OptionsModule], useExisting: PostsOptions }),
    );
    expect(body).toMatchObject(ONE_ANSWER);
  });
});
